package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// poison is one thing that goes wrong in the life of a conversation.
type poison struct {
	name string
	// heals is what the builder must say that it put right, on all wires; empty where there is nothing to put right.
	heals turns.Healing
	// also are what it may say besides.
	also []turns.Healing
	// plant changes a history and says in which row; false if the history has no place for it.
	plant func(m *maker, h *history) (turns.RowID, bool)
}

// poison plants some poisons, or as many as there is room for.
func (m *maker) poison(h *history, n int) {
	for tries := 0; n > 0 && tries < 20; tries++ {
		p := &poisons[m.IntN(len(poisons))]
		if row, ok := p.plant(m, h); ok {
			h.poisons = append(h.poisons, planted{p, row})
			m.note("poison." + p.name)
			n--
		}
	}
}

// poisons are all of them, by what they are about.
var poisons = slices.Concat(textPoisons, callPoisons, resultPoisons, reasoningPoisons, rowPoisons)

// some is a row for which a condition holds, the turn that is asked left out. Its place is -1 if there is none.
func (m *maker) some(h *history, holds func(turns.PathRow) bool) int {
	var places []int
	for i, row := range h.rows {
		if holds(row) {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return -1
	}
	return places[m.IntN(len(places))]
}

func isReply(row turns.PathRow) bool { return row.Reply != nil && counts(row) }
func isUser(row turns.PathRow) bool  { return row.User != nil }

// calling is a reply that has calls.
func calling(row turns.PathRow) bool { return isReply(row) && len(callsOf(contentOf(row))) > 0 }

// talking is a reply that has words and no calls, so that nothing depends on it.
func talking(row turns.PathRow) bool {
	return isReply(row) && !calling(row) && len(contentOf(row)) > 0
}

// inRow changes the blocks of a row for which a condition holds.
func inRow(holds func(turns.PathRow) bool, change func(*maker, *history, []turns.Block) []turns.Block) func(*maker, *history) (turns.RowID, bool) {
	return func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, holds)
		if i < 0 {
			return turns.RowID{}, false
		}
		blocks := change(m, h, slices.Clone(contentOf(h.rows[i])))
		if blocks == nil {
			return turns.RowID{}, false
		}
		setContent(&h.rows[i], blocks)
		return h.rows[i].ID, true
	}
}

// adds puts a block at some place.
func adds(make func(*maker, *history) turns.Block) func(*maker, *history, []turns.Block) []turns.Block {
	return func(m *maker, h *history, blocks []turns.Block) []turns.Block {
		return slices.Insert(blocks, m.IntN(len(blocks)+1), make(m, h))
	}
}

// inText changes the words of a block that has some.
func inText(change func(*maker, string) string) func(*maker, *history, []turns.Block) []turns.Block {
	return func(m *maker, _ *history, blocks []turns.Block) []turns.Block {
		for i, b := range blocks {
			if t, ok := b.(turns.Text); ok {
				blocks[i] = turns.Text{Text: change(m, t.Text)}
				return blocks
			}
		}
		return nil
	}
}

func anyRow(row turns.PathRow) bool { return isReply(row) || isUser(row) }

var textPoisons = []poison{
	{name: "text_blank", heals: turns.HealedBlank, plant: inRow(anyRow, adds(func(m *maker, _ *history) turns.Block {
		return turns.Text{Text: pick(m, " ", "\n\n", "\t \r\n")}
	}))},
	{name: "text_empty_reply", plant: inRow(isReply, adds(func(*maker, *history) turns.Block { return turns.Text{} }))},
	{name: "text_empty_user", heals: turns.HealedBlank, plant: inRow(isUser, adds(func(*maker, *history) turns.Block { return turns.Text{} }))},
	{name: "text_nul", heals: turns.HealedText, plant: inRow(anyRow, inText(func(_ *maker, s string) string { return "\x00" + s + "\x00" }))},
	{name: "text_surrogate", plant: inRow(anyRow, inText(func(m *maker, s string) string { return s + pick(m, "\xed\xa0\xbd", "\xed\xb8\x80", "\xed\xa0") }))},
	{name: "half_emoji", plant: inRow(anyRow, inText(func(m *maker, s string) string { return s + "👩‍👩‍👧"[:1+m.IntN(15)] }))},
	{name: "no_characters", plant: inRow(anyRow, inText(func(_ *maker, s string) string { return s + "\ufffe\uffff\ufeff" }))},
	{name: "repeats", plant: inRow(anyRow, inText(func(m *maker, s string) string {
		return s + strings.Repeat(pick(m, "na ", "\"", "\\", "😀"), 1<<(8+m.IntN(9)))
	}))},
}

// inCall changes the first call of a reply, and the results that follow it as far as its id goes.
func inCall(change func(*maker, *turns.ToolUse)) func(*maker, *history) (turns.RowID, bool) {
	return func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, calling)
		if i < 0 {
			return turns.RowID{}, false
		}
		blocks := slices.Clone(contentOf(h.rows[i]))
		for j, b := range blocks {
			if use, ok := b.(turns.ToolUse); ok {
				before := use.ID
				change(m, &use)
				blocks[j] = use
				setContent(&h.rows[i], blocks)
				h.rename(i+1, before, use.ID)
				break
			}
		}
		return h.rows[i].ID, true
	}
}

// rename changes the id in the results of the user turn at a place; past the rows that is the turn that is asked.
func (h *history) rename(at int, before, after string) {
	content := h.contentAt(at)
	for i, b := range content {
		if r, ok := b.(turns.ToolResult); ok && r.ToolUseID == before {
			r.ToolUseID = after
			content[i] = r
		}
	}
	h.setContentAt(at, content)
}

func (h *history) contentAt(at int) []turns.Block {
	if at < len(h.rows) {
		return slices.Clone(contentOf(h.rows[at]))
	}
	return slices.Clone(h.turn.Content)
}

func (h *history) setContentAt(at int, content []turns.Block) {
	if at < len(h.rows) {
		setContent(&h.rows[at], content)
		return
	}
	h.turn.Content = content
}

func inputs(texts ...string) func(*maker, *turns.ToolUse) {
	return func(m *maker, use *turns.ToolUse) { use.InputJSON = pick(m, texts...) }
}

var callPoisons = []poison{
	{name: "input_cut", heals: turns.HealedInput, plant: inCall(func(m *maker, use *turns.ToolUse) {
		open := strings.TrimRight(use.InputJSON, "}")
		if open == "" { // another poison was here first
			open = "{"
		}
		use.InputJSON = strings.ToValidUTF8(open[:1+m.IntN(len(open))], "")
	})},
	{name: "input_no_object", also: []turns.Healing{turns.HealedInput}, plant: inCall(inputs(`[1,2]`, `"text"`, `null`, `1e9`, `true`))},
	{name: "input_surrogate", heals: turns.HealedInput, plant: inCall(inputs(`{"q":"\ud83d"}`, `{"\udc00":1}`, `{"q":"\ud83d\ud83d\ude00 \\ud800"}`))},
	{name: "input_twice_a_key", also: []turns.Healing{turns.HealedInput}, plant: inCall(inputs(`{"q":1,"q":2}`, `{"a":{"b":[{"c":1,"c":1}]}}`, `{"a":1,"\u0061":2}`))},
	{name: "input_nul", also: []turns.Healing{turns.HealedInput}, plant: inCall(inputs(`{"q":"\u0000"}`, "{\"q\":\"\x00\"}"))},
	{name: "input_empty", also: []turns.Healing{turns.HealedInput}, plant: inCall(inputs("", " "))},
	{name: "input_deep", also: []turns.Healing{turns.HealedInput}, plant: inCall(func(m *maker, use *turns.ToolUse) {
		n := 1 << (4 + m.IntN(10))
		use.InputJSON = `{"q":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	})},
	{name: "input_large", plant: inCall(func(m *maker, use *turns.ToolUse) {
		use.InputJSON = `{"q":"` + strings.Repeat(pick(m, "x", `\n`, "é"), 1<<(10+m.IntN(8))) + `"}`
	})},
	{name: "name_hostile", heals: turns.HealedName, plant: inCall(func(m *maker, use *turns.ToolUse) {
		use.Name = pick(m, "", "no such tool", "a.b", "größe", "x\ny", strings.Repeat("n", 100), "<|call|>", "../../etc")
	})},
	{name: "name_digit", also: []turns.Healing{turns.HealedName}, plant: inCall(func(m *maker, use *turns.ToolUse) { use.Name = pick(m, "1st", "-x", "9") })},
	{name: "id_hostile", heals: turns.HealedID, plant: inCall(func(m *maker, use *turns.ToolUse) {
		use.ID = pick(m, "", "a:b/c", "id 1", "größe", "x\ny", "'; drop table", strings.Repeat("i", 100), `"`) + m.callID() + "!"
	})},
	{name: "id_long", heals: turns.HealedID, plant: inCall(func(m *maker, use *turns.ToolUse) { use.ID += strings.Repeat("x", 41) })},
	{name: "id_empty", heals: turns.HealedID, plant: inCall(func(_ *maker, use *turns.ToolUse) { use.ID = "" })},
	{name: "id_of_another_reply", heals: turns.HealedID, plant: reuseID},
	{name: "call_twice", heals: turns.HealedDuplicate, plant: inRow(calling, func(m *maker, _ *history, blocks []turns.Block) []turns.Block {
		use := pick(m, callsOf(blocks)...)
		use.InputJSON = m.input()
		return append(blocks, use)
	})},
	{name: "words_after_call", plant: inRow(calling, func(m *maker, _ *history, blocks []turns.Block) []turns.Block {
		return append(blocks, turns.Text{Text: m.words(markText)})
	})},
	{name: "words_between_calls", plant: inRow(func(row turns.PathRow) bool { return isReply(row) && len(callsOf(contentOf(row))) > 1 },
		func(m *maker, _ *history, blocks []turns.Block) []turns.Block {
			return slices.Insert(blocks, len(blocks)-1, turns.Block(turns.Text{Text: m.words(markText)}))
		})},
}

// reuseID gives a call the id that one of an earlier reply has, as small models do that count from zero.
func reuseID(m *maker, h *history) (turns.RowID, bool) {
	var places []int
	for i, row := range h.rows {
		if calling(row) {
			places = append(places, i)
		}
	}
	if len(places) < 2 {
		return turns.RowID{}, false
	}
	n := 1 + m.IntN(len(places)-1)
	older, newer := callsOf(contentOf(h.rows[places[n-1]])), slices.Clone(contentOf(h.rows[places[n]]))
	for j, b := range newer {
		if use, ok := b.(turns.ToolUse); ok {
			before := use.ID
			use.ID = older[0].ID
			newer[j] = use
			setContent(&h.rows[places[n]], newer)
			h.rename(places[n]+1, before, use.ID)
			// Both must be in the window for one to be in the way of the other.
			return h.rows[max(places[n-1]-1, 0)].ID, true
		}
	}
	return turns.RowID{}, false
}

// inAnswer changes what comes after a reply with calls; past the rows that is the turn that is asked.
func inAnswer(change func(m *maker, calls []turns.ToolUse, content []turns.Block) []turns.Block) func(*maker, *history) (turns.RowID, bool) {
	return func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, calling)
		if i < 0 {
			return turns.RowID{}, false
		}
		content := change(m, callsOf(contentOf(h.rows[i])), h.contentAt(i+1))
		if len(content) == 0 {
			return turns.RowID{}, false
		}
		h.setContentAt(i+1, content)
		return h.rows[i].ID, true
	}
}

// dropResults takes results out of content, the first or all of them, and leaves words in any case.
func dropResults(m *maker, content []turns.Block, all bool) (left []turns.Block) {
	dropped := false
	for _, b := range content {
		if _, ok := b.(turns.ToolResult); ok && (all || !dropped) {
			dropped = true
			continue
		}
		left = append(left, b)
	}
	return append(left, turns.Text{Text: m.words(markText)})
}

var resultPoisons = []poison{
	{name: "result_missing", heals: turns.HealedUnanswered, plant: inAnswer(func(m *maker, _ []turns.ToolUse, content []turns.Block) []turns.Block {
		return dropResults(m, content, false)
	})},
	{name: "results_missing", heals: turns.HealedUnanswered, plant: inAnswer(func(m *maker, _ []turns.ToolUse, content []turns.Block) []turns.Block {
		return dropResults(m, content, true)
	})},
	{name: "result_orphan", heals: turns.HealedOrphan, plant: inRow(isUser, adds(func(m *maker, _ *history) turns.Block { return m.result("nobody-" + m.callID()) }))},
	{name: "result_twice", heals: turns.HealedOrphan, plant: inAnswer(func(m *maker, calls []turns.ToolUse, content []turns.Block) []turns.Block {
		return append(content, m.result(calls[0].ID))
	})},
	{name: "result_late", heals: turns.HealedOrphan, also: []turns.Healing{turns.HealedUnanswered}, plant: lateResult},
	{name: "result_error_silent", plant: inAnswer(func(_ *maker, calls []turns.ToolUse, content []turns.Block) []turns.Block {
		for i, b := range content {
			if r, ok := b.(turns.ToolResult); ok && r.ToolUseID == calls[0].ID {
				content[i] = turns.ToolResult{ToolUseID: r.ToolUseID, IsError: true}
			}
		}
		return content
	})},
	{name: "result_blank", heals: turns.HealedBlank, plant: inAnswer(func(m *maker, calls []turns.ToolUse, content []turns.Block) []turns.Block {
		for i, b := range content {
			if r, ok := b.(turns.ToolResult); ok && r.ToolUseID == calls[0].ID {
				content[i] = turns.ToolResult{ToolUseID: r.ToolUseID, IsError: m.in(50), Content: []turns.Block{turns.Text{Text: pick(m, " ", "\n")}}}
				return content
			}
		}
		return nil
	})},
}

// lateResult answers a call one turn too late.
func lateResult(m *maker, h *history) (turns.RowID, bool) {
	i := m.some(h, calling)
	if i < 0 || i+3 > len(h.rows) {
		return turns.RowID{}, false
	}
	for j, b := range h.contentAt(i + 1) {
		if _, ok := b.(turns.ToolResult); ok {
			h.setContentAt(i+1, append(slices.Delete(h.contentAt(i+1), j, j+1), turns.Text{Text: m.words(markText)}))
			h.setContentAt(i+3, append(h.contentAt(i+3), b, turns.Text{Text: m.words(markText)}))
			return h.rows[i].ID, true
		}
	}
	return turns.RowID{}, false
}

var reasoningPoisons = []poison{
	{name: "thinking_foreign", heals: turns.HealedReasoning, plant: inRow(isReply, func(m *maker, h *history, blocks []turns.Block) []turns.Block {
		return slices.Insert(blocks, 0, turns.Block(turns.Thinking{Text: m.words(markMind), Seal: home{"vendor.unknown", "x"}.seal(m.signature())}))
	})},
	{name: "thinking_unsealed", heals: turns.HealedReasoning, plant: inRow(isReply, adds(func(m *maker, _ *history) turns.Block {
		return turns.Thinking{Text: m.words(markMind)}
	}))},
	{name: "thinking_last", also: []turns.Healing{turns.HealedReasoning}, plant: inRow(isReply, func(m *maker, h *history, blocks []turns.Block) []turns.Block {
		if !h.home.reasons() {
			return nil
		}
		return append(blocks, m.thought(h.home))
	})},
	{name: "thinking_anywhere", also: []turns.Healing{turns.HealedReasoning}, plant: inRow(isReply, func(m *maker, h *history, blocks []turns.Block) []turns.Block {
		if !h.home.reasons() {
			return nil
		}
		return slices.Insert(blocks, m.IntN(len(blocks)+1), turns.Block(m.thought(h.home)))
	})},
	{name: "opaque_foreign", heals: turns.HealedOpaque, plant: inRow(isReply, adds(func(m *maker, _ *history) turns.Block {
		return turns.Opaque{Type: "memory", Seal: home{"vendor.unknown", "x"}.seal(m.signature())}
	}))},
	{name: "opaque_half", heals: turns.HealedOpaque, plant: inRow(talking, func(m *maker, h *history, blocks []turns.Block) []turns.Block {
		if h.home.wire != string(arrays.AnthropicMessages) {
			return nil
		}
		return append(blocks, m.searched(h.home)[m.IntN(2)])
	})},
	{name: "model_switched", also: []turns.Healing{turns.HealedReasoning, turns.HealedOpaque}, plant: func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, talking)
		if i < 0 {
			return turns.RowID{}, false
		}
		row := h.rows[i]
		blocks := slices.DeleteFunc(m.said(pick(m, homes...)), func(b turns.Block) bool { _, call := b.(turns.ToolUse); return call })
		setContent(&row, append(blocks, turns.Text{Text: m.words(markText)}))
		h.rows[i] = row
		return row.ID, true
	}},
}

var rowPoisons = []poison{
	{name: "reply_abandoned", heals: turns.HealedRoles, plant: loseReply(func(m *maker, r *turns.Reply) {
		r.Status, r.Reason = turns.StatusAbandoned, pick(m, turns.ReasonCancelled, turns.ReasonProviderError, turns.ReasonLeaseExpired,
			turns.ReasonDisconnected, turns.ReasonDeadline, turns.ReasonShutdown, turns.ReasonAmbiguous)
		r.Content = piecesOf([]turns.Block{turns.Text{Text: m.words(markText)}, turns.ToolUse{ID: m.callID(), Name: "f", InputJSON: `{"cut`}})
	})},
	{name: "reply_unfinished", heals: turns.HealedRoles, plant: loseReply(func(m *maker, r *turns.Reply) {
		r.Status, r.Reason = pick(m, turns.StatusInFlight, turns.StatusHeld), ""
		r.Content = piecesOf([]turns.Block{turns.Text{Text: m.words(markText)}})
	})},
	{name: "reply_empty", heals: turns.HealedRoles, plant: loseReply(func(m *maker, r *turns.Reply) {
		r.Content = piecesOf(pick(m, nil, []turns.Block{turns.Text{}}, []turns.Block{turns.Thinking{}}, []turns.Block{turns.Refusal{}}))
	})},
	{name: "reply_blank", heals: turns.HealedRoles, also: []turns.Healing{turns.HealedBlank, turns.HealedEmpty}, plant: loseReply(func(m *maker, r *turns.Reply) {
		r.Content = piecesOf([]turns.Block{turns.Text{Text: pick(m, " ", "\n\n")}})
	})},
	{name: "reply_of_thoughts", heals: turns.HealedRoles, also: []turns.Healing{turns.HealedReasoning}, plant: loseReply(func(m *maker, r *turns.Reply) {
		r.Content = piecesOf([]turns.Block{turns.Thinking{Text: m.words(markMind), Seal: home{r.Provider, r.ProviderModel}.seal(m.signature())}})
	})},
	{name: "log_broken", heals: turns.HealedRoles, plant: loseReply(func(m *maker, r *turns.Reply) {
		r.Content = []turns.Piece{{Block: uint32(1 + m.IntN(3)), Kind: turns.KindText, Text: m.words(markText)}}
	})},
	{name: "user_twice", heals: turns.HealedRoles, plant: func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, talking)
		if i < 1 {
			return turns.RowID{}, false
		}
		h.rows = slices.Delete(h.rows, i, i+1)
		return h.rows[i-1].ID, true
	}},
	{name: "calls_abandoned", heals: turns.HealedOrphan, also: []turns.Healing{turns.HealedRoles, turns.HealedEmpty}, plant: func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, calling)
		if i < 1 || len(h.rows) == i+1 { // the turn that is asked must keep its words
			return turns.RowID{}, false
		}
		reply := *h.rows[i].Reply
		reply.Status, reply.Reason = turns.StatusAbandoned, turns.ReasonCancelled
		h.rows[i].Reply = &reply
		return h.rows[i-1].ID, true
	}},
	{name: "beginning_lost", also: []turns.Healing{turns.HealedOrphan, turns.HealedUnanswered, turns.HealedEmpty}, plant: func(m *maker, h *history) (turns.RowID, bool) {
		if len(h.rows) < 2 {
			return turns.RowID{}, false
		}
		h.rows = slices.Clone(h.rows[1+m.IntN(len(h.rows)-1):])
		return h.rows[0].ID, true
	}},
}

// loseReply makes a reply without calls one that is no part of the history.
func loseReply(change func(*maker, *turns.Reply)) func(*maker, *history) (turns.RowID, bool) {
	return func(m *maker, h *history) (turns.RowID, bool) {
		i := m.some(h, talking)
		if i < 1 {
			return turns.RowID{}, false
		}
		reply := *h.rows[i].Reply
		change(m, &reply)
		h.rows[i].Reply = &reply
		return h.rows[i-1].ID, true // merged with the user turn before it, if that is there
	}
}

// String names the poison and its row.
func (p planted) String() string { return fmt.Sprintf("%s in %s", p.poison.name, p.row) }
