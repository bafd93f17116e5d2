package main

import (
	"encoding/base64"
	"fmt"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// models are those that replies come from and requests go to, two a wire.
var models = [2]string{"model-a", "model-b"}

// homes are all places that replies come from.
var homes = allHomes()

func allHomes() (all []home) {
	for _, wire := range arrays.Wires {
		for _, model := range models {
			all = append(all, home{string(wire), model})
		}
	}
	return all
}

// seal is a vendor's seal as its adapter writes it: the wire, the model, and the vendor's own.
func (h home) seal(data string) string { return h.wire + "/" + h.model + "\n" + data }

// reasons reports whether the wire gives reasoning back.
func (h home) reasons() bool { return h.wire != string(arrays.OpenAIChat) }

// said is what a reply says: thoughts, words, what the vendor ran itself, calls.
func (m *maker) said(from home) (blocks []turns.Block) {
	if from.reasons() && m.in(35) {
		blocks = append(blocks, m.thought(from))
		m.note("thinking." + from.wire)
	}
	if from.wire == string(arrays.AnthropicMessages) && m.in(10) {
		blocks = append(blocks, m.searched(from)...)
		m.note("opaque")
	}
	calls := 0
	if m.in(35) {
		calls = 1 + m.IntN(3)
	}
	if calls > 1 {
		m.note("parallel_calls")
	}
	switch n := m.IntN(20); {
	case n == 0:
		m.note("refusal")
		blocks = append(blocks, turns.Refusal{Text: m.words(markText), Category: "policy"})
	case n < 15 || calls == 0:
		blocks = append(blocks, turns.Text{Text: m.words(markText)})
		if from.wire == string(arrays.GeminiGenerate) && m.in(20) {
			blocks = append(blocks, turns.Thinking{Redacted: true, Seal: from.seal(m.signature())})
			m.note("text_signed")
		}
	}
	for i := range calls {
		blocks = append(blocks, m.call(from, i == 0))
		m.note("call")
	}
	return blocks
}

// thought is one that the home's model had.
func (m *maker) thought(from home) turns.Thinking {
	if m.in(20) {
		m.note("thinking_redacted")
		return turns.Thinking{Redacted: true, Seal: from.seal(m.signature())}
	}
	if m.in(10) {
		m.note("thinking_silent") // a signature of thoughts that are not shown
		return turns.Thinking{Seal: from.seal(m.signature())}
	}
	return turns.Thinking{Text: m.words(markMind), Seal: from.seal(m.signature())}
}

// signature is base64 that can be told from any other.
func (m *maker) signature() string {
	return base64.StdEncoding.EncodeToString([]byte(m.mark(markSeal)))
}

// searched is a search that the vendor ran itself, with its result.
func (m *maker) searched(from home) []turns.Block {
	id := fmt.Sprintf("srvtoolu_%d", m.IntN(1_000_000))
	return []turns.Block{
		turns.Opaque{Type: "server_tool_use", Seal: from.seal(fmt.Sprintf(`{"type":"server_tool_use","id":%q,"name":"web_search","input":{"query":"x"}}`, id))},
		turns.Opaque{Type: "web_search_tool_result", Seal: from.seal(fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":%q,"content":[]}`, id))},
	}
}

// toolNames are what may be called.
var toolNames = []string{"search", "read_file", "write-file", "f", "T_1"}

// call is a call of a tool. Of several calls Gemini signs the first.
func (m *maker) call(from home, first bool) turns.ToolUse {
	use := turns.ToolUse{ID: m.callID(), Name: pick(m, toolNames...), InputJSON: m.input()}
	if from.wire == string(arrays.GeminiGenerate) {
		use.Seal = from.seal("")
		if first {
			use.Seal = from.seal(m.signature())
		}
	}
	return use
}

// input is what a model writes: objects with odd spaces, deep and large numbers, escapes.
func (m *maker) input() string {
	mark := m.mark(markInput)
	return fmt.Sprintf(pick(m, `{"q":"%s"}`, `{ "q" : "%s", "n": 12345678901234567890.10 }`, `{"a":[[[{"b":{"q":"%s"}}]]]}`,
		`{"q":"%s \ud83d\ude00 \"x\" \\ \/ \u00e4","z":null}`, "{\n\t\"q\": \"%s\",\n\t\"t\": true\n}"), mark)
}
