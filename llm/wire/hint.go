package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxHint caps what a provider can ask to wait. It is far past any deadline, so that a caller still sees "too long",
// and far from overflow.
const MaxHint = 30 * 24 * time.Hour

// limitFamilies are the rate limits that the two vendors report in every answer: how much is left and when it is full
// again.
var limitFamilies = []struct{ remaining, reset string }{
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
	{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
	{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
}

// Hint is how long an answer asks to wait before the next request, and whether it asks at all. The explicit headers come
// first: Retry-After-Ms, then Retry-After in seconds or as a date. A date is read against the answer's own Date, so that
// a skewed clock does not shift it. Otherwise, for a status that speaks of load, the reset time of a limit of which
// nothing is left. A time in the past, or a negative one, is a wait of zero.
func Hint(status int, h http.Header, now time.Time) (time.Duration, bool) {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d, true
	}
	if d, ok := retryAfter(h.Get("Retry-After"), now); ok {
		return d, true
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == statusOverloaded {
		return limitReset(h, now)
	}
	return 0, false
}

// retryAfter reads the two forms that the standard knows, and fractions, which some servers send.
func retryAfter(s string, now time.Time) (time.Duration, bool) {
	if d, ok := number(s, time.Second); ok {
		return d, true
	}
	if at, err := http.ParseTime(strings.TrimSpace(s)); err == nil {
		return capped(at.Sub(now)), true
	}
	return 0, false
}

// number reads a decimal number of units. What is too large for any number still means "very long".
func number(s string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if math.IsNaN(f) || (err != nil && !math.IsInf(f, 0)) || (err == nil && math.IsInf(f, 0)) {
		return 0, false // an infinite value without error is the word "inf", with one a number past any float
	}
	return time.Duration(min(max(f, 0)*float64(unit), float64(MaxHint))), true
}

// limitReset is the longest reset of the limits that are used up.
func limitReset(h http.Header, now time.Time) (longest time.Duration, ok bool) {
	for _, f := range limitFamilies {
		if left := strings.TrimSpace(h.Get(f.remaining)); left != "" && left != "0" {
			continue
		}
		if d, is := resetIn(h.Get(f.reset), now); is {
			longest, ok = max(longest, d), true
		}
	}
	return longest, ok
}

// resetIn reads "6m0s", "0.5" (seconds) or a time of RFC 3339.
func resetIn(s string, now time.Time) (time.Duration, bool) {
	if d, ok := number(s, time.Second); ok {
		return d, true
	}
	if d, err := time.ParseDuration(strings.TrimSpace(s)); err == nil {
		return capped(d), true
	}
	if at, err := time.Parse(time.RFC3339, strings.TrimSpace(s)); err == nil {
		return capped(at.Sub(now)), true
	}
	return 0, false
}

// capped keeps a wait between nothing and MaxHint.
func capped(d time.Duration) time.Duration { return min(max(d, 0), MaxHint) }
