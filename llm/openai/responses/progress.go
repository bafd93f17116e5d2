package responses

import "github.com/turnd/turnd/turns"

// progress is how much of a reply was given out.
type progress struct {
	responded bool // on this connection
	named     bool
	blocks    int // that were begun
	text      int // bytes of the last one
	open      bool
}

func (p *progress) add(d turns.Delta) {
	switch d := d.(type) {
	case turns.Responded:
		p.responded = true
	case turns.ResponseStarted:
		p.named = true
	case turns.BlockStarted:
		p.blocks, p.text, p.open = p.blocks+1, 0, true
	case turns.BlockDelta:
		p.text += len(d.Text)
	case turns.BlockEnded:
		p.open = false
	}
}

// rest takes from the deltas of a whole reply what was given out before.
func (p *progress) rest(whole []turns.Delta) (rest []turns.Delta) {
	var at progress
	for _, d := range whole {
		text := at.text
		at.add(d)
		if d, ok := p.unsaid(d, at, text); ok {
			rest = append(rest, d)
		}
	}
	return rest
}

// unsaid is what of a delta was not given out before, and whether that is anything. at is how far the whole reply is with it,
// and text how much of its block came before it.
func (p *progress) unsaid(d turns.Delta, at progress, text int) (turns.Delta, bool) {
	later := at.blocks > p.blocks
	within := at.blocks == p.blocks && p.open
	switch d := d.(type) {
	case turns.Responded:
		return d, !p.responded
	case turns.ResponseStarted:
		return d, !p.named
	case turns.BlockStarted:
		return d, later
	case turns.BlockSealed, turns.BlockEnded:
		return d, later || within
	case turns.BlockDelta:
		if within && at.text > p.text {
			return turns.BlockDelta{Text: d.Text[max(p.text-text, 0):]}, true
		}
		return d, later
	}
	return d, true
}
