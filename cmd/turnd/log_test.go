package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATextLineHasItsMessageUnquotedAndThenItsAttributes(t *testing.T) {
	var out bytes.Buffer
	newLogger(&out, logText, levelInfo).Warn("provider call failed", "class", "throttled", "action", "retry",
		"attempt", "2/5", "in", "2.3s", "turn_id", "0196f0c8-0000-7000-8000-000000000000")
	_, line, found := strings.Cut(out.String(), " ")
	require.True(t, found, "the time comes first")
	require.Equal(t, "WRN provider call failed class=throttled action=retry attempt=2/5 in=2.3s turn_id=0196f0c8-0000-7000-8000-000000000000\n", line)
}

func TestAJSONLineIsAnObject(t *testing.T) {
	var out bytes.Buffer
	newLogger(&out, logJSON, levelInfo).Info("serving", "listen", "127.0.0.1:1")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "serving", line["msg"])
	require.Equal(t, "127.0.0.1:1", line["listen"])
}

func TestALevelHidesWhatIsBelowIt(t *testing.T) {
	for level, want := range map[string][]string{
		levelDebug: {"one", "two", "three", "four"}, levelInfo: {"two", "three", "four"},
		levelWarn: {"three", "four"}, levelError: {"four"},
	} {
		var out bytes.Buffer
		log := newLogger(&out, logJSON, level)
		log.Debug("one")
		log.Info("two")
		log.Warn("three")
		log.Error("four")
		var seen []string
		for line := range strings.Lines(out.String()) {
			var entry struct{ Msg string }
			require.NoError(t, json.Unmarshal([]byte(line), &entry))
			seen = append(seen, entry.Msg)
		}
		require.Equal(t, want, seen, level)
	}
}
