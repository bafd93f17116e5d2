package turns

import (
	"errors"
	"strings"
)

// errDiverged ends a call whose answer is not what was shown of it before: there are never two different bytes under one
// reply id and offset.
var errDiverged = errors.New("the repeated answer differs from what was stored of it")

// repeatLog is the live log of a reply whose call is sent again under the same key: the same answer comes from its
// beginning, so what the log holds already is compared with it and not written twice.
type repeatLog struct {
	LiveLog
	// shown is what the log held when the reply was taken over, and rest what of it the answer under way has yet to repeat.
	shown []Piece
	rest  []Piece
}

func newRepeatLog(log LiveLog, shown []Piece) *repeatLog {
	return &repeatLog{LiveLog: log, shown: merged(shown)}
}

// begin is called before each call: its answer starts anew.
func (l *repeatLog) begin() { l.rest = append([]Piece(nil), l.shown...) }

// behind reports whether the answer has not yet come as far as what was shown.
func (l *repeatLog) behind() bool { return len(l.rest) > 0 }

// Append implements LiveLog.
func (l *repeatLog) Append(p Piece) error {
	if l.behind() {
		more, err := l.swallow(p)
		if err != nil || more.Len() == 0 {
			return err
		}
		p = more
	}
	l.shown = nil // a call that wrote anything new is the reply's last
	return l.LiveLog.Append(p)
}

// swallow takes from a piece what repeats the log, and gives what goes beyond it.
func (l *repeatLog) swallow(p Piece) (more Piece, err error) {
	old := &l.rest[0]
	if p.Block != old.Block || p.Kind != old.Kind || p.Starts != old.Starts || p.ToolUseID != old.ToolUseID ||
		p.ToolName != old.ToolName || p.Redacted != old.Redacted || p.Type != old.Type {
		return Piece{}, errDiverged
	}
	rest := Piece{Block: p.Block, Kind: p.Kind, Ends: p.Ends, Seal: p.Seal}
	left := Piece{Block: p.Block, Kind: p.Kind, Ends: old.Ends}
	switch n := len(p.Text); {
	case n < len(old.Text):
		if p.Ends || !strings.HasPrefix(old.Text, p.Text) {
			return Piece{}, errDiverged
		}
		left.Text = old.Text[n:]
	case !strings.HasPrefix(p.Text, old.Text), old.Ends && n > len(old.Text):
		return Piece{}, errDiverged
	default:
		rest.Text = p.Text[len(old.Text):]
	}
	if left.Ends && rest.Ends {
		left.Ends, rest.Ends = false, false // both end here
	}
	if *old = left; left.Len() == 0 {
		l.rest = l.rest[1:]
	}
	return rest, nil
}
