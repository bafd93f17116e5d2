package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func TestASecretShowsNowhere(t *testing.T) {
	const key = "sk-very-secret"
	s := wire.Secret(key)
	var out bytes.Buffer
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", struct{ Key wire.Secret }{s})
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "key", s, "in", struct{ Key wire.Secret }{s})
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "key", s, "in", struct{ Key wire.Secret }{s})
	require.NoError(t, json.NewEncoder(&out).Encode(map[string]any{"key": s}))
	require.NotContains(t, out.String(), key)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", key))
	require.Contains(t, out.String(), "[redacted]")
	require.Equal(t, key, s.Reveal())
	require.Empty(t, fmt.Sprint(wire.Secret("")), "no key shows as none")
}

func TestACountTakesWhateverAServerWrites(t *testing.T) {
	for literal, want := range map[string]int64{"7": 7, "7.9": 7, "-1": 0, "null": 0, `"7"`: 0, "{}": 0, "1e30": 0, "1e3": 1000} {
		var v struct{ N *wire.Count }
		require.NoError(t, json.Unmarshal([]byte(`{"N":`+literal+`}`), &v))
		require.Equal(t, want, v.N.Value(), literal)
	}
}

func TestZerosAreReportedOnlyForAnEmptyReply(t *testing.T) {
	var m wire.Meter
	require.Empty(t, m.Report(nil, turns.Usage{}))
	require.Empty(t, m.Finish(nil, true))
	require.Equal(t, []turns.Delta{turns.UsageReported{Usage: turns.Usage{Source: turns.SourceReported}}}, m.Finish(nil, false))
	require.Len(t, m.Report(nil, turns.Usage{Input: 1}), 1)
	require.Empty(t, m.Finish(nil, false), "what was reported stands")
	require.Empty(t, new(wire.Meter).Finish(nil, false), "nothing was said")
}

func TestAReplyTakesTheSmallerOfWhatIsAskedAndAllowed(t *testing.T) {
	for _, tt := range []struct{ asked, limit, want int }{{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {5, 9, 5}, {9, 5, 5}} {
		got := wire.MaxOutput(turns.Options{MaxOutputTokens: int32(tt.asked)}, turns.Limits{MaxOutputTokens: tt.limit})
		require.Equal(t, tt.want, got)
	}
}
