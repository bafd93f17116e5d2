package main

import (
	"slices"

	"github.com/turnd/turnd/turns"
)

// make makes the history of a number: a clean one, in which nothing has to be put right, one with a single poison, or one
// with several.
func (m *maker) history(number int64) *history {
	h := &history{number: number, home: pick(m, homes...), lenient: !m.in(8)}
	m.clean(h)
	m.optionsOf(h)
	switch n := m.IntN(10); {
	case n < 2:
		m.note("clean")
	case n < 6:
		m.poison(h, 1)
	default:
		m.poison(h, 2+m.IntN(5))
	}
	m.windowsOf(h)
	return h
}

// rounds is how many user turns a history has before the one that is asked.
func (m *maker) rounds() int {
	switch n := m.IntN(200); {
	case n == 0:
		m.note("long_history")
		return 40 + m.IntN(160)
	case n < 10:
		return 10 + m.IntN(20)
	case n < 40:
		m.note("first_turn")
		return 0
	default:
		return 1 + m.IntN(7)
	}
}

// clean makes rows in which user and replies take turns and every call has its result.
func (m *maker) clean(h *history) {
	var parent turns.RowID
	var open []turns.ToolUse
	for range m.rounds() {
		user := m.userRow(parent, open)
		reply := m.replyRow(user.ID, h.home)
		h.rows = append(h.rows, user, reply)
		parent, open = reply.ID, callsOf(contentOf(reply))
	}
	row := m.userRow(parent, open)
	h.turn = *row.User
	h.turn.Parent = parent
}

func (m *maker) userRow(parent turns.RowID, open []turns.ToolUse) turns.PathRow {
	id := m.row()
	user := &turns.UserTurn{ID: turns.TurnID(id), Parent: parent, Content: m.asked(open), Generation: 1}
	if m.in(10) {
		user.Generation = 2
		m.note("regenerated")
	}
	return turns.PathRow{ID: id, Parent: parent, User: user}
}

// asked is what a user sends: results for all open calls, in their order, then words.
func (m *maker) asked(open []turns.ToolUse) (content []turns.Block) {
	for _, use := range open {
		content = append(content, m.result(use.ID))
	}
	if len(open) > 1 && m.in(30) {
		m.Shuffle(len(content), func(i, j int) { content[i], content[j] = content[j], content[i] })
		m.note("results_in_any_order")
	}
	if len(open) > 0 && m.in(60) {
		m.note("results_alone")
		return content
	}
	texts := 1
	if m.in(10) {
		texts = 2
	}
	for range texts {
		content = append(content, turns.Text{Text: m.words(markText)})
	}
	if len(open) > 0 && m.in(10) { // words may stand before results
		slices.Reverse(content)
		m.note("words_before_results")
	}
	return content
}

func (m *maker) result(id string) turns.ToolResult {
	r := turns.ToolResult{ToolUseID: id, IsError: m.in(15)}
	if r.IsError {
		m.note("result_error")
	}
	switch n := m.IntN(12); {
	case n == 0 && !r.IsError:
		m.note("result_empty")
	case n == 1:
		r.Content = []turns.Block{turns.Text{Text: m.words(markResult)}, turns.Text{Text: m.words(markResult)}}
	default:
		r.Content = []turns.Block{turns.Text{Text: m.words(markResult)}}
	}
	return r
}

func (m *maker) replyRow(turn turns.RowID, from home) turns.PathRow {
	id := m.row()
	reply := &turns.Reply{ID: turns.ReplyID(id), Turn: turns.TurnID(turn), Status: turns.StatusComplete, Attempt: 1, Generation: 1,
		StopReason: turns.StopEndTurn, ProviderModel: from.model, Provider: from.wire}
	if m.in(5) {
		reply.Status, reply.Reason = turns.StatusAbandoned, turns.ReasonSuperseded
		m.note("reply_superseded")
	}
	row := turns.PathRow{ID: id, Parent: turn, Reply: reply}
	setContent(&row, m.said(from))
	if m.in(10) {
		row.Reply.Content = m.split(row.Reply.Content)
	}
	return row
}

// split cuts some pieces of a log in two, as checkpoints do.
func (m *maker) split(pieces []turns.Piece) (out []turns.Piece) {
	for _, p := range pieces {
		head, tail, err := p.Split(uint32(m.IntN(int(p.Len()) + 1)))
		if err != nil || head.Len() == 0 || tail.Len() == 0 {
			out = append(out, p)
			continue
		}
		out = append(out, head, tail)
		m.note("log_in_pieces")
	}
	return out
}

// windowsOf picks what a history is built with: everything, and windows from one token to about all of it.
func (m *maker) windowsOf(h *history) {
	total := int(turns.EstimateTokens(len(h.options.System)))
	for _, row := range h.rows {
		total += int(turns.EstimateTokens(turns.SizeOf(contentOf(row))))
	}
	last := int(turns.EstimateTokens(turns.SizeOf(h.turn.Content)))
	all := total + last
	h.windows = []window{{}, {tokens: max(1, pick(m, 1, last, last+1, 1+m.IntN(all+1), all-1, all, all+1, 2*all))}}
	if at := m.some(h, isUser); at >= 0 && m.in(40) {
		pinned := h.rows[at].ID
		switch m.IntN(8) {
		case 0:
			pinned = m.row()
			m.note("pin_out_of_reach")
		case 1:
			pinned = h.turn.ID.Row()
			m.note("pin_at_turn")
		default:
			m.note("pin")
		}
		h.windows = append(h.windows, window{tokens: pick(m, 0, 1+m.IntN(all+1)), pinned: pinned})
	} else {
		h.windows = append(h.windows, window{tokens: last + m.IntN(total+2)})
	}
}
