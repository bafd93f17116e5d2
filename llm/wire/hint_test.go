package wire_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
)

func TestEveryFormOfAHintIsRead(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		name    string
		status  int
		headers []string // name, value, name, value
		want    time.Duration
		hinted  bool
	}{
		{"none", 429, nil, 0, false},
		{"seconds", 429, []string{"Retry-After", "30"}, 30 * time.Second, true},
		{"seconds with space", 429, []string{"Retry-After", " 30 "}, 30 * time.Second, true},
		{"zero", 429, []string{"Retry-After", "0"}, 0, true},
		{"fraction", 429, []string{"Retry-After", "0.5"}, 500 * time.Millisecond, true},
		{"negative", 429, []string{"Retry-After", "-5"}, 0, true},
		{"an hour", 429, []string{"Retry-After", "3600"}, time.Hour, true},
		{"absurdly long", 429, []string{"Retry-After", "99999999999999999999999"}, wire.MaxHint, true},
		{"past any float", 429, []string{"Retry-After", "1e999"}, wire.MaxHint, true},
		{"past any float, negative", 429, []string{"Retry-After", "-1e999"}, 0, true},
		{"no number", 429, []string{"Retry-After", "soon"}, 0, false},
		{"not a number", 429, []string{"Retry-After", "NaN"}, 0, false},
		{"infinity", 429, []string{"Retry-After", "Inf"}, 0, false},
		{"a date", 429, []string{"Retry-After", in(time.Minute)}, time.Minute, true},
		{"a date of a skewed clock", 429, []string{"Retry-After", in(time.Hour + 5*time.Second), "Date", in(time.Hour)}, 5 * time.Second, true},
		{"a date gone by", 429, []string{"Retry-After", in(-time.Minute)}, 0, true},
		{"a date in a year", 429, []string{"Retry-After", in(365 * 24 * time.Hour)}, wire.MaxHint, true},
		{"milliseconds", 429, []string{"Retry-After-Ms", "1500", "Retry-After", "9"}, 1500 * time.Millisecond, true},
		{"bad milliseconds", 429, []string{"Retry-After-Ms", "x", "Retry-After", "9"}, 9 * time.Second, true},
		{"a status that is not about load", 400, []string{"Retry-After", "9"}, 9 * time.Second, true},
		{"reset of an OpenAI limit", 429, []string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "6m0s"}, 6 * time.Minute, true},
		{"reset in seconds", 429, []string{"X-Ratelimit-Reset-Tokens", "1.5"}, 1500 * time.Millisecond, true},
		{"the longest of the limits that are used up", 429, []string{
			"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "20ms",
			"X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "2s"}, 2 * time.Second, true},
		{"a limit with something left", 429, []string{"X-Ratelimit-Remaining-Requests", "5", "X-Ratelimit-Reset-Requests", "6m0s"}, 0, false},
		{"reset of an Anthropic limit", 429, []string{"Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", now.Add(90 * time.Second).Format(time.RFC3339)}, 90 * time.Second, true},
		{"a bad reset", 429, []string{"Anthropic-Ratelimit-Requests-Reset", "later"}, 0, false},
		{"a reset when overloaded", 529, []string{"Anthropic-Ratelimit-Requests-Reset", now.Add(time.Second).Format(time.RFC3339)}, time.Second, true},
		{"a reset is in every answer", 500, []string{"X-Ratelimit-Reset-Requests", "6m0s"}, 0, false},
		{"Retry-After before a reset", 429, []string{"Retry-After", "1", "X-Ratelimit-Reset-Requests", "6m0s"}, time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := make(http.Header)
			for i := 0; i < len(tt.headers); i += 2 {
				h.Set(tt.headers[i], tt.headers[i+1])
			}
			got, hinted := wire.Hint(tt.status, h, now)
			require.Equal(t, tt.hinted, hinted)
			require.Equal(t, tt.want, got)
		})
	}
}
