package turns

import (
	"math"
	"slices"
)

// The low water of a window that is cut: three quarters of what it may hold. A provider's cache holds the beginning of a
// prompt, so a window that slid on by a turn with each turn would never be found there. Cut so, it stands until it is full.
const (
	lowWaterParts = 3
	lowWaterOf    = 4
)

// window is a prompt with the row it starts at, and how many tokens it takes by the measure that it was cut by.
type window struct {
	prompt Prompt
	start  RowID
	tokens int64
}

// buildWindow makes the prompt of a question.
//
// A reply counts if it is complete, or was until another took its place and a later turn hangs below it; failed and
// running ones are no part of the history. A window starts before a user turn and never between a tool call and its
// result. Where it starts is, in this order: where an earlier attempt of the same generation did (whatever the limit says,
// so that the same bytes come out again); where the newest reply on the path by the same model did, while that fits; else it
// is cut.
func buildWindow(q Question) (window, error) {
	if err := q.Options.checkToolChoice(); err != nil {
		return window{}, err
	}
	budget := q.budget()
	if own := q.overhead(); own > budget {
		return window{}, q.ownTooLarge(own, budget)
	}
	if q.Pinned == q.Turn.ID.Row() {
		return q.window(measured(nil, q), 0), nil
	}
	if at := placeOf(q.Path, q.Pinned); at >= 0 {
		return q.window(measured(q.Path[:at+1], q), at+1), nil
	}
	path, carried := q.Path, false
	if at := placeOf(path, q.carriedStart()); at >= 0 {
		path, carried = path[:at+1], true
	}
	m := measured(path, q)
	if n := len(path); carried && m.steps[n-1].begins() && m.total(n, sum(m.steps)) <= budget {
		return q.window(m, n), nil
	}
	n, err := q.cut(m, budget, !carried && isPartOf(path))
	if err != nil {
		return window{}, err
	}
	return q.window(m, n), nil
}

// budget is how much the prompt may take; what the reply takes is not part of it.
func (q Question) budget() int64 {
	if q.Route.Limits.WindowTokens > 0 {
		return int64(q.Route.Limits.WindowTokens)
	}
	return math.MaxInt64
}

// carriedStart is where the newest reply on the path by the same model started; zero if there is none.
func (q Question) carriedStart() RowID {
	for _, row := range q.Path {
		if r := row.Reply; r.counts() && r.Model == q.Route.Model && !r.WindowStart.IsZero() {
			return r.WindowStart
		}
	}
	return RowID{}
}

// placeOf is where a row stands in a path, -1 if it does not.
func placeOf(path []PathRow, id RowID) int {
	return slices.IndexFunc(path, func(row PathRow) bool { return row.ID == id })
}

// isPartOf reports whether a path was read in part: its oldest row is not the root.
func isPartOf(path []PathRow) bool { return len(path) > 0 && !path[len(path)-1].Parent.IsZero() }

// cut is how many steps a new window has: all, if they fit; else as many as take no more than the low water, or the fewest
// that can stand alone. Where the path was read in part, that was all that may be read, so the window is held below the low
// water of its rows and bytes as well.
func (q Question) cut(m measure, budget int64, part bool) (int, error) {
	low := budget / lowWaterOf * lowWaterParts
	most := room{rows: math.MaxInt, bytes: math.MaxInt}
	if part {
		most = room{rows: len(m.steps) * lowWaterParts / lowWaterOf, bytes: sizeOf(m.steps) / lowWaterOf * lowWaterParts}
	}
	least, best, all := -1, -1, -1
	if !answersCalls(q.Turn.Content) {
		least, best, all = 0, 0, 0
	}
	var used room
	tokens := int64(0)
	for i, s := range m.steps {
		used.rows, used.bytes, tokens = used.rows+1, used.bytes+SizeOf(s.message.Content), tokens+s.tokens
		total := m.total(i+1, tokens)
		if total > budget {
			break
		}
		if !s.begins() {
			continue
		}
		if least < 0 {
			least = i + 1
		}
		if total <= low && used.rows <= most.rows && used.bytes <= most.bytes {
			best = i + 1
		}
		all = i + 1
	}
	switch fits := !part && m.total(len(m.steps), sum(m.steps)) <= budget; {
	case least < 0:
		return 0, q.loopTooLarge(m, budget)
	case fits:
		return all, nil
	}
	return max(least, best), nil
}

// room is how much of a path is taken.
type room struct{ rows, bytes int }

func sizeOf(steps []step) (bytes int) {
	for _, s := range steps {
		bytes += SizeOf(s.message.Content)
	}
	return bytes
}

// window is the prompt with the first n steps of a path.
func (q Question) window(m measure, n int) window {
	w := window{start: q.Turn.ID.Row(), tokens: m.total(n, sum(m.steps[:n]))}
	messages := make([]Message, 0, n+1)
	for _, s := range slices.Backward(m.steps[:n]) {
		if s.counts {
			messages = append(messages, s.message)
		}
	}
	if n > 0 {
		w.start = m.steps[n-1].row.ID
	}
	w.prompt = Prompt{Options: q.Options, Messages: append(messages, Message{Role: RoleUser, Content: q.Turn.Content})}
	return w
}
