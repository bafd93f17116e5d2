package turns

import (
	"math"
	"sync"
)

// bytesPerToken is the prior of the estimate, in tenths: 3.5 bytes a token, a middle value of today's tokenizers over
// prose and code.
const bytesPerTokenTenths = 35

// EstimateTokens estimates tokens from a number of bytes by the prior, rounding up: for what no model has been asked yet.
func EstimateTokens(bytes int) int64 {
	if bytes <= 0 {
		return 0
	}
	return (int64(bytes)*10 + bytesPerTokenTenths - 1) / bytesPerTokenTenths
}

// EstimateUsage estimates by the prior what a call took that was sent and whose usage was not reported, from the bytes of
// its request and of what came back.
func EstimateUsage(requestBytes, replyBytes int) Usage {
	return Usage{Input: EstimateTokens(requestBytes), Output: EstimateTokens(replyBytes), Source: SourceEstimated, Calls: 1}
}

// The bounds of what is learned: a call weighs 1/16 of all before it, a ratio far from any tokenizer is not believed, and
// there are not many models.
const (
	learnDecay   = 15.0 / 16
	leastBytes   = 0.5
	mostBytes    = 16.0
	learnedLimit = 1024
)

// estimator estimates the tokens of calls whose provider did not report them, by what finished calls of the same model
// took for their bytes. It lives in this process: what it has not seen yet is estimated by the prior. The zero value is
// ready.
type estimator struct {
	mu     sync.Mutex
	models map[modelName]*ratios
}

// modelName is a model as its tokenizer knows it.
type modelName struct{ provider, model string }

// ratios are sums of bytes and of tokens, of requests and of replies.
type ratios struct{ inBytes, inTokens, outBytes, outTokens float64 }

// learn takes in a finished call whose usage was reported.
func (e *estimator) learn(route Route, requestBytes, replyBytes int, u Usage) {
	if requestBytes <= 0 || replyBytes <= 0 || u.Input <= 0 || u.Output <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	name := modelName{route.Provider, route.ProviderModel}
	r := e.models[name]
	if r == nil {
		if len(e.models) >= learnedLimit {
			return
		}
		if e.models == nil {
			e.models = map[modelName]*ratios{}
		}
		r = &ratios{}
		e.models[name] = r
	}
	r.inBytes, r.inTokens = r.inBytes*learnDecay+float64(requestBytes), r.inTokens*learnDecay+float64(u.Input)
	r.outBytes, r.outTokens = r.outBytes*learnDecay+float64(replyBytes), r.outTokens*learnDecay+float64(u.Output)
}

// tokens estimates both directions.
func (e *estimator) tokens(route Route, requestBytes, replyBytes int) (in, out int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.models[modelName{route.Provider, route.ProviderModel}]
	if r == nil {
		return EstimateTokens(requestBytes), EstimateTokens(replyBytes)
	}
	return scaled(requestBytes, r.inBytes, r.inTokens), scaled(replyBytes, r.outBytes, r.outTokens)
}

// scaled is the tokens of some bytes by a ratio that was seen.
func scaled(bytes int, seenBytes, seenTokens float64) int64 {
	if bytes <= 0 {
		return 0
	}
	perToken := min(max(seenBytes/seenTokens, leastBytes), mostBytes)
	return int64(math.Ceil(float64(bytes) / perToken))
}

// estimate is the usage of a call that was sent and whose usage was not reported, from the bytes of its request and of what
// came back. Its output is what was received, so a lower bound of what was generated; high is the upper bound, as far as
// the endpoint has a limit, else 0.
func (s *Service) estimate(route Route, requestBytes, replyBytes int) (u Usage, low, high int64) {
	u = Usage{Source: SourceEstimated, Calls: 1}
	u.Input, u.Output = s.estimates.tokens(route, requestBytes, replyBytes)
	u.CostMicros = route.Prices.cost(u)
	return u, u.Output, outputBound(route, u.Output)
}

// outputBound is the most that a call can have generated; 0 if nothing bounds it.
func outputBound(route Route, least int64) int64 {
	if route.Limits.MaxOutputTokens == 0 {
		return 0
	}
	return max(least, int64(route.Limits.MaxOutputTokens))
}

// cost is what a usage costs, in millionths. Cached input without a price of its own costs what other input does.
func (p Prices) cost(u Usage) int64 {
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	plain := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return int64(math.Round(float64(plain)*p.Input + float64(u.CacheRead)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output))
}
