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
func (p progress) rest(whole []turns.Delta) (rest []turns.Delta) {
	var at progress
	for _, d := range whole {
		before := at
		at.add(d)
		current := at.blocks == p.blocks && p.open
		switch d := d.(type) {
		case turns.Responded:
			if !p.responded {
				rest = append(rest, d)
			}
		case turns.ResponseStarted:
			if !p.named {
				rest = append(rest, d)
			}
		case turns.BlockDelta:
			if at.blocks > p.blocks || current && at.text > p.text {
				if current && before.text < p.text {
					d.Text = d.Text[p.text-before.text:]
				}
				rest = append(rest, d)
			}
		case turns.BlockStarted:
			if at.blocks > p.blocks {
				rest = append(rest, d)
			}
		case turns.BlockSealed, turns.BlockEnded:
			if at.blocks > p.blocks || current {
				rest = append(rest, d)
			}
		default:
			rest = append(rest, d)
		}
	}
	return rest
}
