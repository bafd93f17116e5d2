package main

import (
	"slices"

	"github.com/turnd/turnd/turns"
)

// history is a conversation as it is stored, the turn that is asked now, and what it is asked with.
type history struct {
	// number is its place in the run, from which alone it is made again.
	number int64
	// rows are oldest first; the turn hangs below the last.
	rows    []turns.PathRow
	turn    turns.UserTurn
	options turns.Options
	// home is where its replies came from.
	home home
	// poisons are what was planted, in the order in which it was.
	poisons []planted
	// lenient leaves out the options that a wire does not take, so that a request comes of it; windows are what it is built
	// with.
	lenient bool
	windows []window
}

// home is a wire and a model there.
type home struct{ wire, model string }

// planted is one poison and the row that it is in.
type planted struct {
	poison *poison
	row    turns.RowID
}

// window is what bounds a request.
type window struct {
	tokens int // 0 is unlimited
	pinned turns.RowID
}

// path is the history as a store gives it, newest row first.
func (h *history) path() []turns.PathRow {
	path := slices.Clone(h.rows)
	slices.Reverse(path)
	return path
}

// without is a copy that lacks some rows, from one place to another.
func (h *history) without(from, to int) *history {
	c := *h
	c.rows = slices.Concat(h.rows[:from], h.rows[to:])
	return &c
}

// A mark is a word that stands in one row and nowhere else; its third letter says what the text was.
const (
	markText   = 'w' // words of the user or a reply
	markResult = 'r'
	markInput  = 'i' // of a call
	markMind   = 'h' // what was thought
	markSeal   = 's'
	markSystem = 'y'
	markTool   = 'd' // a description
)

// counts reports whether a row is a part of what is said.
func counts(row turns.PathRow) bool {
	if row.User != nil {
		return true
	}
	return row.Reply.Status == turns.StatusComplete || row.Reply.Reason == turns.ReasonSuperseded
}

// contentOf are the blocks of a row, as they are stored.
func contentOf(row turns.PathRow) []turns.Block {
	if row.User != nil {
		return row.User.Content
	}
	log, err := turns.LogOf(row.Reply.Content)
	if err != nil {
		return nil
	}
	blocks, _ := log.Blocks(0)
	return blocks
}

// piecesOf is the log of a reply that says some blocks.
func piecesOf(blocks []turns.Block) (pieces []turns.Piece) {
	for _, b := range blocks {
		p := turns.Piece{Block: uint32(len(pieces)), Starts: true, Ends: true}
		switch b := b.(type) {
		case turns.Text:
			p.Kind, p.Text, p.Seal = turns.KindText, b.Text, b.Seal
		case turns.Refusal:
			p.Kind, p.Text, p.Type, p.Seal = turns.KindRefusal, b.Text, b.Category, b.Seal
		case turns.Thinking:
			p.Kind, p.Text, p.Redacted, p.Seal = turns.KindThinking, b.Text, b.Redacted, b.Seal
		case turns.ToolUse:
			p.Kind, p.Text, p.ToolUseID, p.ToolName, p.Seal = turns.KindToolUse, b.InputJSON, b.ID, b.Name, b.Seal
		case turns.Opaque:
			p.Kind, p.Type, p.Seal = turns.KindOpaque, b.Type, b.Seal
		default:
			continue
		}
		pieces = append(pieces, p)
	}
	return pieces
}

// setContent puts other blocks into a row.
func setContent(row *turns.PathRow, blocks []turns.Block) {
	if row.User != nil {
		user := *row.User
		user.Content = blocks
		row.User = &user
		return
	}
	reply := *row.Reply
	reply.Content = piecesOf(blocks)
	row.Reply = &reply
}

// callsOf are the calls in some blocks.
func callsOf(blocks []turns.Block) (calls []turns.ToolUse) {
	for _, b := range blocks {
		if use, ok := b.(turns.ToolUse); ok {
			calls = append(calls, use)
		}
	}
	return calls
}

// stored is the history after one trip to the store and back, which is the only form that the service builds from.
func (h *history) stored() (*history, error) {
	if h == nil {
		return nil, nil
	}
	c := *h
	c.rows = make([]turns.PathRow, len(h.rows))
	for i, row := range h.rows {
		if row.User != nil {
			user := *row.User
			data, err := turns.EncodeContent(user.Content)
			if err != nil {
				return nil, err
			}
			if user.Content, err = turns.DecodeContent(data); err != nil {
				return nil, err
			}
			row.User = &user
		} else {
			reply := *row.Reply
			data, err := turns.EncodePieces(reply.Content)
			if err != nil {
				return nil, err
			}
			if reply.Content, err = turns.DecodePieces(data); err != nil {
				return nil, err
			}
			row.Reply = &reply
		}
		c.rows[i] = row
	}
	data, err := turns.EncodeContent(h.turn.Content)
	if err != nil {
		return nil, err
	}
	if c.turn.Content, err = turns.DecodeContent(data); err != nil {
		return nil, err
	}
	if data, err = turns.EncodeOptions(h.options); err != nil {
		return nil, err
	}
	c.options, err = turns.DecodeOptions(data)
	return &c, err
}
