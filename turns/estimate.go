package turns

// bytesPerToken is the prior of the estimate, in tenths: 3.5 bytes a token, a middle value of today's tokenizers over
// prose and code.
const bytesPerTokenTenths = 35

// EstimateTokens estimates tokens from a number of bytes, rounding up, for what a provider did not report.
func EstimateTokens(bytes int) int64 {
	if bytes <= 0 {
		return 0
	}
	return (int64(bytes)*10 + bytesPerTokenTenths - 1) / bytesPerTokenTenths
}

// EstimateUsage estimates a call that was sent and whose usage was not reported, from the bytes of its request and of
// what came back.
func EstimateUsage(requestBytes, replyBytes int) Usage {
	return Usage{Input: EstimateTokens(requestBytes), Output: EstimateTokens(replyBytes), Source: SourceEstimated, Calls: 1}
}
