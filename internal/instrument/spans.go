package instrument

// Names of turnd's spans, apart from those of calls to models, which are called by operation and model as the conventions
// have it. The spans of RPCs and of statements are named by their libraries.
const (
	SpanSubmit     = "submit"
	SpanRegenerate = "regenerate"
	SpanCancel     = "cancel"
	SpanClaim      = "claim"
	// SpanReply is the making of a reply on one worker, which outlives the request that began it.
	SpanReply      = "reply"
	SpanCheckpoint = "checkpoint"
	// SpanTakeover and SpanReplace begin the next reply span, as a claim begins the first.
	SpanTakeover = "takeover"
	SpanReplace  = "replace"
	SpanComplete = "complete"
	SpanAbandon  = "abandon"
	SpanHold     = "hold"
)

// Attributes of turnd's spans. Ids are random numbers or made of such; no attribute holds a text that somebody wrote, a
// tenant, a subject or a key.
const (
	TurnID     = "turnd.turn.id"
	ReplyID    = "turnd.reply.id"
	CallID     = "turnd.call.id"
	Result     = "turnd.result"
	Attempt    = "turnd.attempt"
	Generation = "turnd.generation"
	Epoch      = "turnd.epoch"
	Won        = "turnd.won"
	Way        = "turnd.takeover.way"
	Status     = "turnd.status"
	Reason     = "turnd.reason"
	Endpoint   = "turnd.endpoint"
	Try        = "turnd.try"
	CallNumber = "turnd.call.number"
	Class      = "turnd.call.class"
	Phase      = "turnd.call.phase"
	RepliesN   = "turnd.replies"
	HTTPStatus = "http.response.status_code"
	// LinkTo is on links, and says what they lead to.
	LinkTo = "turnd.link"
)
