package instrument

// Words of OpenTelemetry's GenAI conventions, as open-telemetry/semantic-conventions-genai has them since they left the
// general conventions. They are under development and may still be renamed: this file is the only place to follow.
//
// Two of their rules shape what is counted. A call that only fetches a stored response is OperationFetch and reports no
// tokens, so that nothing is counted twice. Tokens that turnd estimated are not reported under these names at all, but
// under turnd.provider.tokens with source="estimated".
const (
	OperationName     = "gen_ai.operation.name"
	ProviderName      = "gen_ai.provider.name"
	RequestModel      = "gen_ai.request.model"
	RequestStream     = "gen_ai.request.stream"
	RequestMaxTokens  = "gen_ai.request.max_tokens"
	ResponseModel     = "gen_ai.response.model"
	ResponseID        = "gen_ai.response.id"
	FinishReasons     = "gen_ai.response.finish_reasons"
	InputTokens       = "gen_ai.usage.input_tokens"
	OutputTokens      = "gen_ai.usage.output_tokens"
	CacheReadTokens   = "gen_ai.usage.cache_read.input_tokens"
	CacheWriteTokens  = "gen_ai.usage.cache_write.input_tokens"
	ReasoningTokens   = "gen_ai.usage.reasoning.output_tokens"
	TokenModality     = "gen_ai.token.modality"
	ErrorType         = "error.type"
	ServerAddress     = "server.address"
	ServerPort        = "server.port"
	ConversationID    = "gen_ai.conversation.id"
	ResponseFirstByte = "gen_ai.response.time_to_first_chunk"
)

// Values of OperationName.
const (
	OperationChat  = "chat"
	OperationFetch = "fetch_response"
)

// Names of the conventions' client metrics.
const (
	InferenceTime         = "gen_ai.client.inference.duration"
	InferenceFirstChunk   = "gen_ai.client.inference.time_to_first_chunk"
	InferenceInput        = "gen_ai.client.inference.usage.input_tokens"
	InferenceOutput       = "gen_ai.client.inference.usage.output_tokens"
	InferenceCacheRead    = "gen_ai.client.inference.usage.cache_read.input_tokens"
	InferenceCacheWrite   = "gen_ai.client.inference.usage.cache_write.input_tokens"
	InferenceReasoning    = "gen_ai.client.inference.usage.reasoning.output_tokens"
	InferenceInputSizes   = "gen_ai.client.inference.operation.input_tokens"
	InferenceOutputSizes  = "gen_ai.client.inference.operation.output_tokens"
	modalityOfConventions = "text, or unknown where a request also holds images or documents"
)

// tokenSizes are bounds of histograms of tokens.
var tokenSizes = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576}

// genAI are the metrics of the conventions.
func genAI() []Metric {
	who := []Label{{OperationName, OperationChat + " or " + OperationFetch}, {ProviderName, "vendors of the models file"},
		{RequestModel, "models of the models file, as the provider is asked for them"}}
	failed := append(who[:len(who):len(who)], Label{ErrorType, "class of a failed call; absent otherwise"})
	used := append(who[:len(who):len(who)], Label{TokenModality, modalityOfConventions})
	return []Metric{
		{Name: InferenceTime, Kind: Histogram, Unit: "s", Buckets: long, Labels: failed, About: "Time of a call to a model, from the request to the end of the response."},
		{Name: InferenceFirstChunk, Kind: Histogram, Unit: "s", Buckets: long, Labels: who, About: "Time from the request to the first piece of the response."},
		{Name: InferenceInput, Kind: Counter, Unit: "{token}", Labels: used, About: "Input tokens that the provider reported, cached ones among them, also of failed calls."},
		{Name: InferenceOutput, Kind: Counter, Unit: "{token}", Labels: used, About: "Output tokens that the provider reported, also of failed calls."},
		{Name: InferenceCacheRead, Kind: Counter, Unit: "{token}", Labels: used, About: "Input tokens that the provider read from its cache."},
		{Name: InferenceCacheWrite, Kind: Counter, Unit: "{token}", Labels: used, About: "Input tokens that the provider wrote to its cache."},
		{Name: InferenceReasoning, Kind: Counter, Unit: "{token}", Labels: used, About: "Output tokens that went into reasoning."},
		{Name: InferenceInputSizes, Kind: Histogram, Unit: "{token}", Buckets: tokenSizes, Labels: who, About: "Input tokens of a call that succeeded; for percentiles, not for sums."},
		{Name: InferenceOutputSizes, Kind: Histogram, Unit: "{token}", Buckets: tokenSizes, Labels: who, About: "Output tokens of a call that succeeded; for percentiles, not for sums."},
	}
}
