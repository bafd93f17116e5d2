package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// errHole says that a part of a reply's log is neither in memory nor stored any more, as after a failover that lost
// commits: the reply can't be completed, only kept as far as it goes.
var errHole = errors.New("a part of the log is lost")

// whole is the run's log from its first byte on, and its length. What memory has let go of is read back from the store.
// With errHole it is what there is without a gap; any other error means that the store can't be asked now. The caller
// holds mu.
func (r *run) whole(ctx context.Context) (pieces []Piece, length uint32, err error) {
	for {
		first := r.log.First()
		pieces, length = r.log.Tail(first)
		if r.log.First() != first {
			continue // it let go of more meanwhile
		}
		if first == 0 {
			return pieces, length, nil
		}
		row, err := r.store.ReadReply(ctx, r.key, r.reply.ID)
		if errors.Is(err, ErrNotFound) {
			return nil, 0, errHole
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read back the start of a log: %w", err)
		}
		return joinLog(row.Content, first, pieces, length)
	}
}

// joinLog puts a stored log and the part from an offset on that is in memory together. Where the two overlap they must say
// the same.
func joinLog(stored []Piece, first uint32, tail []Piece, length uint32) ([]Piece, uint32, error) {
	log, err := LogOf(stored)
	if err != nil {
		return nil, 0, errHole
	}
	if log.Len() < first || log.Len() > length {
		return stored, log.Len(), errHole
	}
	shared, _, err := log.From(first, 0)
	if err != nil {
		return stored, log.Len(), errHole
	}
	rest, ok := after(tail, shared)
	if !ok {
		return stored, log.Len(), errHole
	}
	for _, p := range rest {
		if err := log.Append(p); err != nil {
			return stored, log.Len(), errHole
		}
	}
	pieces, n, err := log.From(0, 0)
	if err == nil && n != length {
		err = errHole
	}
	return pieces, n, err
}

// after is what follows in a part of a log behind its beginning, which must be the one given.
func after(pieces, beginning []Piece) (rest []Piece, ok bool) {
	pieces = merged(pieces)
	for i, b := range beginning {
		if i == len(pieces) {
			return nil, false
		}
		p := pieces[i]
		if p == b {
			continue
		}
		// Only the last block of the beginning may be cut.
		text, found := strings.CutPrefix(p.Text, b.Text)
		if i < len(beginning)-1 || !found || b.Ends || p.Block != b.Block || p.Kind != b.Kind || p.Starts != b.Starts {
			return nil, false
		}
		cut := Piece{Block: p.Block, Kind: p.Kind, Text: text, Ends: p.Ends, Seal: p.Seal}
		return append([]Piece{cut}, pieces[i+1:]...), true
	}
	return pieces[len(beginning):], true
}

// merged joins the pieces of each block.
func merged(pieces []Piece) []Piece {
	var out []Piece
	for _, p := range pieces {
		if n := len(out); n > 0 && !p.Starts && out[n-1].Block == p.Block && !out[n-1].Ends {
			last := &out[n-1]
			last.Text, last.Ends, last.Seal = last.Text+p.Text, p.Ends, p.Seal
			continue
		}
		out = append(out, p)
	}
	return out
}
