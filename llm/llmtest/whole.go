package llmtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

const difficultText = "naïve 你好🦀 👩‍👩‍👧 done"

func runWhole(t *testing.T, a llm.Adapter) {
	for _, write := range []scripted.WriteMode{scripted.WriteEvent, scripted.WriteByte, scripted.WriteOnce} {
		for _, end := range []scripted.LineEnd{scripted.LineEndLF, scripted.LineEndCRLF, scripted.LineEndCR} {
			t.Run(string(write)+" "+string(end), func(t *testing.T) {
				s := scripted.Start(t, planned(scripted.Plan{
					Blocks: []scripted.Block{{Text: difficultText}}, Write: write, LineEnd: end,
				}))
				r := open(t, a, s.URL(), turns.Limits{}).collect(t)
				requireWhole(t, r, difficultText)
				call := s.Calls()[0]
				require.Equal(t, call.ResponseID, r.ResponseID)
				require.Equal(t, callKey, call.IdempotencyKey)
				require.Equal(t, int64(call.InputTokens), r.Usage.Input)
				require.Equal(t, int64(call.OutputTokens), r.Usage.Output)
				require.Equal(t, 1, s.Counts().Requests)
			})
		}
	}
	t.Run("usage that is not reported, or zeros, is none", func(t *testing.T) {
		for _, usage := range []scripted.Usage{scripted.UsageNone, scripted.UsageZero} {
			s := scripted.Start(t, planned(scripted.Plan{Usage: usage}))
			r := open(t, a, s.URL(), turns.Limits{}).collect(t)
			require.NotNil(t, r.Finished)
			require.Nil(t, r.Usage, usage)
		}
	})
	t.Run("what comes after the terminal event does not matter", func(t *testing.T) {
		for _, do := range []scripted.Action{scripted.DoRepeatTerminal, scripted.DoKeepOpen, scripted.DoReset, scripted.DoClose} {
			s := scripted.Start(t, planned(scripted.Plan{
				Blocks: []scripted.Block{{Text: "whole"}},
				Steps:  []scripted.Step{{At: scripted.AtAfterTerminal, Do: do}},
			}))
			requireWhole(t, open(t, a, s.URL(), turns.Limits{}).collect(t), "whole")
		}
	})
	t.Run("comments and unknown events do not matter", func(t *testing.T) {
		v := Voices[a.Wire]
		p := Play(t, func(x *Exchange) {
			x.Stream(": hello\n\n" + v.Unknown + v.Open + ":\n" + v.Text("a") + v.Unknown + v.Text("b") + v.Close + v.Unknown + v.Terminal)
		})
		requireWhole(t, open(t, a, p.URL(), turns.Limits{}).collect(t), "ab")
	})
}

func requireWhole(t testing.TB, r Result, text string) {
	t.Helper()
	require.Nil(t, r.Err)
	require.Equal(t, text, r.Text)
	require.Equal(t, turns.StopEndTurn, r.Finished.StopReason)
	require.Equal(t, 200, r.Responded.HTTPStatus)
	require.NotNil(t, r.Usage)
	require.Equal(t, turns.SourceReported, r.Usage.Source)
}

// planned is a script that answers every request alike.
func planned(p scripted.Plan) scripted.Script {
	return scripted.Script{Rules: []scripted.Rule{{Plan: p}}}
}

func runText(t *testing.T, a llm.Adapter) {
	v := Voices[a.Wire]
	for _, tt := range []struct {
		name     string
		literals []string
		want     string
	}{
		{"a surrogate pair over two deltas", []string{`a\ud83e`, `\udd80b`}, "a🦀b"},
		{"half a pair at the end", []string{`a\ud83e`}, "a\uFFFD"},
		{"NUL", []string{`a\u0000`, `\u0000`, `b`}, "ab"},
		{"raw halves of a rune", []string{"a\xf0\x9f", "\xa6\x80b"}, "a🦀b"},
		{"empty deltas", []string{"", "a", ""}, "a"},
		{"an event larger than any buffer", []string{strings.Repeat("0123456789", 20_000)}, strings.Repeat("0123456789", 20_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Play(t, func(x *Exchange) { x.Stream(v.Whole(tt.literals...)) })
			requireWhole(t, open(t, a, p.URL(), turns.Limits{}).collect(t), tt.want)
		})
	}
	t.Run("however the stream is cut into packets", func(t *testing.T) {
		stream := v.Whole("naïve 你好", `\ud83e`, `\udd80`, " 👩‍👩‍👧")
		for _, ends := range []string{"\n", "\r\n", "\r"} {
			p := Play(t, func(x *Exchange) {
				x.Begin()
				for _, b := range []byte(strings.ReplaceAll(stream, "\n", ends)) {
					x.Events(string([]byte{b}))
				}
				x.End()
			})
			requireWhole(t, open(t, a, p.URL(), turns.Limits{}).collect(t), "naïve 你好🦀 👩‍👩‍👧")
		}
	})
}
