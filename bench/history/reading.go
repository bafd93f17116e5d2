package main

import (
	"slices"
	"strings"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// reading is a built request, read for the marks of the history it was built from. It knows what has to be in a request
// from the rows alone.
type reading struct {
	subject
	h     *history
	w     window
	start turns.RowID
	// body is the request; seen are the marks in it, where each first stands and how often.
	body  string
	seen  map[string]int
	times map[string]int
	// rows are those inside of the window, the turn as the last, outside those before them.
	rows, outside []turns.PathRow
}

func newReading(s subject, h *history, built turns.Built, w window) *reading {
	r := &reading{subject: s, h: h, w: w, start: built.Start, body: string(built.Request.Body), seen: make(map[string]int), times: make(map[string]int)}
	for i := 0; ; {
		at := strings.Index(r.body[i:], "zq")
		if at < 0 {
			break
		}
		i += at
		if mark := markAt(r.body[i:]); mark != "" {
			if r.times[mark]++; r.times[mark] == 1 {
				r.seen[mark] = i
			}
		}
		i += 2
	}
	all := append(slices.Clone(h.rows), turns.PathRow{ID: h.turn.ID.Row(), User: &h.turn})
	from := slices.IndexFunc(all, func(row turns.PathRow) bool { return row.ID == built.Start })
	if from >= 0 {
		r.outside, r.rows = all[:from], all[from:]
	}
	return r
}

func markAt(s string) string {
	const size = 10
	if len(s) < size || s[2] < 'a' || s[2] > 'z' || strings.Trim(s[3:size], "0123456789") != "" {
		return ""
	}
	return s[:size]
}

// marksOf are the marks in a text.
func marksOf(s string) (marks []string) {
	for i := strings.Index(s, "zq"); i >= 0; {
		if mark := markAt(s[i:]); mark != "" {
			marks = append(marks, mark)
		}
		next := strings.Index(s[i+2:], "zq")
		if next < 0 {
			break
		}
		i += 2 + next
	}
	return marks
}

func (r *reading) judge(o *outcome) {
	if !r.judgeStart(o) {
		return
	}
	r.judgeWords(o)
	r.judgeSilence(o)
	r.judgeResults(o)
	r.judgeThoughts(o)
	for _, mark := range marksOf(r.h.options.System) {
		if r.times[mark] != 1 {
			o.find(problemSystem, "%d times", r.times[mark])
		}
	}
	r.judgeHealing(o)
}

// judgeStart checks that the window starts at a user turn that can be understood alone, or where it was pinned.
func (r *reading) judgeStart(o *outcome) bool {
	if len(r.rows) == 0 {
		o.find(problemStart, "at no row of the path")
		return false
	}
	first := r.rows[0]
	pinned := r.w.pinned == first.ID
	switch {
	case first.User == nil:
		o.find(problemStart, "at a reply")
	case hasResults(first.User.Content) && !pinned && first.ID != r.h.turn.ID.Row() && !first.Parent.IsZero():
		o.find(problemStart, "at results")
	}
	there := slices.ContainsFunc(r.h.rows, func(row turns.PathRow) bool { return row.ID == r.w.pinned && row.User != nil })
	if there && !pinned {
		o.find(problemPin, "")
	}
	return true
}

// judgeWords checks that all that was said inside of the window is in the request, once and in its order.
func (r *reading) judgeWords(o *outcome) {
	last, asked := -1, false
	for i, row := range r.rows {
		// What answers nothing can't be sent: a pin may lie at a turn of results alone, whose calls are gone.
		asked = asked || row.User != nil && speaks(row.User.Content)
		if !counts(row) || !asked {
			continue
		}
		for _, b := range contentOf(row) {
			text := ""
			switch b := b.(type) {
			case turns.Text:
				text = b.Text
			case turns.Refusal:
				text = b.Text
			}
			for _, mark := range marksOf(text) {
				at, ok := r.seen[mark]
				switch {
				case !ok:
					o.find(problemLost, "row %d of %d", i, len(r.rows))
				case r.times[mark] > 1:
					o.find(problemTwice, "row %d of %d", i, len(r.rows))
				case at < last:
					o.find(problemOrder, "row %d of %d", i, len(r.rows))
				}
				last = max(last, at)
			}
		}
	}
}

// judgeSilence checks that nothing is there of replies that failed, and of rows before the window.
func (r *reading) judgeSilence(o *outcome) {
	for i, row := range r.rows {
		if !counts(row) {
			r.silent(o, row, problemFailed, i)
		}
	}
	for i, row := range r.outside {
		r.silent(o, row, problemOutside, i)
	}
}

func (r *reading) silent(o *outcome, row turns.PathRow, kind string, i int) {
	for _, b := range contentOf(row) {
		for _, mark := range marksOf(textOf(b)) {
			if r.times[mark] > 0 {
				o.find(kind, "row %d", i)
			}
		}
	}
}

// textOf is all text of a block in which a mark can stand.
func textOf(b turns.Block) string {
	switch b := b.(type) {
	case turns.Text:
		return b.Text
	case turns.Refusal:
		return b.Text
	case turns.Thinking:
		return b.Text
	case turns.ToolUse:
		return b.InputJSON
	case turns.ToolResult:
		var all []string
		for _, inner := range b.Content {
			all = append(all, textOf(inner))
		}
		return strings.Join(all, "\n")
	}
	return ""
}

// judgeResults checks that each call has the newest result that the turns right after it gave, and that no other result is
// there.
func (r *reading) judgeResults(o *outcome) {
	open := make(map[string]bool)              // ids of the calls of the last reply
	given := make(map[string]turns.ToolResult) // their results
	var all []turns.ToolResult
	close := func() {
		for _, result := range all {
			marks := marksOf(textOf(result))
			newest, is := given[result.ToolUseID]
			wanted := is && slices.Equal(marksOf(textOf(newest)), marks)
			for _, mark := range marks {
				if want := wanted && open[result.ToolUseID]; want != (r.times[mark] == 1) {
					o.find(problemResult, "wanted %v, there %d times", want, r.times[mark])
				}
			}
		}
		clear(open)
		clear(given)
		all = nil
	}
	asked := false // as for words
	for _, row := range r.rows {
		if row.User != nil {
			asked = asked || speaks(row.User.Content)
			for _, b := range row.User.Content {
				if result, ok := b.(turns.ToolResult); ok {
					given[result.ToolUseID] = result
					all = append(all, result)
				}
			}
			continue
		}
		if !counts(row) || !says(row) {
			continue
		}
		close()
		if !asked {
			continue
		}
		for _, use := range callsOf(contentOf(row)) {
			open[use.ID] = true
		}
	}
	close()
}

// says reports whether a reply has anything that is sent: words, a call, or what only its vendor understands.
func says(row turns.PathRow) bool {
	for _, b := range contentOf(row) {
		switch b := b.(type) {
		case turns.Text:
			if strings.Trim(b.Text, "\x00 \t\r\n") != "" {
				return true
			}
		case turns.Refusal:
			if strings.TrimSpace(b.Text) != "" {
				return true
			}
		case turns.ToolUse:
			return true
		}
	}
	return false
}

// judgeThoughts checks that thoughts go back to the wire and model that had them, and to no other.
func (r *reading) judgeThoughts(o *outcome) {
	own := string(r.wire) + "/" + r.route.ProviderModel + "\n"
	asked := false // as for words
	for i, row := range r.rows {
		asked = asked || row.User != nil && speaks(row.User.Content)
		if !counts(row) || !asked {
			continue
		}
		content := contentOf(row)
		for j, b := range content {
			thought, ok := b.(turns.Thinking)
			if !ok {
				continue
			}
			data, mine := strings.CutPrefix(thought.Seal, own)
			if !mine {
				for _, mark := range marksOf(thought.Text) {
					if r.times[mark] > 0 {
						o.find(problemForeign, "row %d of %d", i, len(r.rows))
					}
				}
				if _, data, ok = strings.Cut(thought.Seal, "\n"); ok && data != "" && strings.Contains(r.body, data) {
					o.find(problemForeign, "row %d of %d", i, len(r.rows))
				}
				continue
			}
			if j+1 < len(content) && leads(content[:j], content[j+1]) && data != "" && r.wire != arrays.OpenAIChat && !strings.Contains(r.body, data) {
				o.find(problemThoughts, "row %d of %d", i, len(r.rows))
			}
		}
	}
}

// leads reports whether a block is one that thoughts led to, and is sent: a call whose id stood before it is not.
func leads(before []turns.Block, b turns.Block) bool {
	switch b := b.(type) {
	case turns.Text:
		return len(marksOf(b.Text)) > 0
	case turns.ToolUse:
		return !slices.ContainsFunc(callsOf(before), func(earlier turns.ToolUse) bool { return earlier.ID == b.ID })
	}
	return false
}
