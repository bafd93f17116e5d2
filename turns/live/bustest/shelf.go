package bustest

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

var key = turns.ConversationKey{7}

// shelf is a store in memory, as far as a hub sees it. Logs lie in it as chunks, as they do in a database.
type shelf struct {
	mu   sync.Mutex
	rows map[turns.ReplyID]*row
}

type row struct {
	reply  turns.Reply
	chunks []chunk
}

type chunk struct {
	from   uint32
	pieces []turns.Piece
}

func newShelf() *shelf { return &shelf{rows: map[turns.ReplyID]*row{}} }

// add puts a reply in flight on the shelf.
func (s *shelf) add() turns.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := turns.Reply{ID: turns.ReplyID{UUID: uuid.New()}, Status: turns.StatusInFlight, Epoch: 3}
	s.rows[reply.ID] = &row{reply: reply}
	return reply
}

// checkpoint stores the tail of a log and gives the length that is stored now.
func (s *shelf) checkpoint(id turns.ReplyID, log turns.LiveLog) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	pieces, length := log.Tail(r.reply.Length)
	if len(pieces) > 0 {
		r.chunks = append(r.chunks, chunk{r.reply.Length, pieces})
		r.reply.Length = length
	}
	return r.reply.Length
}

// end completes a reply and gives its row.
func (s *shelf) end(id turns.ReplyID) turns.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	r.reply.Status = turns.StatusComplete
	return r.reply
}

// FindTurn implements live.Reader: nobody waits in line here.
func (s *shelf) FindTurn(context.Context, turns.ConversationKey, turns.RowID) (turns.UserTurn, error) {
	return turns.UserTurn{}, turns.NotFound("turn", "turn_id")
}

// ReadReply implements live.Reader.
func (s *shelf) ReadReply(_ context.Context, _ turns.ConversationKey, id turns.ReplyID) (turns.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	if r == nil {
		return turns.Reply{}, turns.NotFound("reply", "")
	}
	reply := r.reply
	for _, c := range r.chunks {
		reply.Content = append(reply.Content, c.pieces...)
	}
	return reply, nil
}

// ReadLogs implements live.Reader. A chunk is read whole, so a part may begin before the offset that was asked for.
func (s *shelf) ReadLogs(_ context.Context, positions []turns.LogPosition) ([]turns.LogView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	views := make([]turns.LogView, len(positions))
	for i, p := range positions {
		if r := s.rows[p.Reply]; r != nil {
			views[i] = r.view(p)
		}
	}
	return views, nil
}

func (r *row) view(p turns.LogPosition) turns.LogView {
	v := turns.LogView{Reply: r.reply, From: p.From}
	size := 0
	for i, c := range r.chunks {
		last := i == len(r.chunks)-1
		if !last && r.chunks[i+1].from <= p.From || last && r.reply.Length <= p.From || p.Max > 0 && size >= p.Max {
			continue
		}
		if len(v.Pieces) == 0 {
			v.From = c.from
		}
		v.Pieces = append(v.Pieces, c.pieces...)
		for _, piece := range c.pieces {
			size += int(piece.Len())
		}
	}
	return v
}

// ReadLine implements live.Reader. Nothing waits in line here.
func (s *shelf) ReadLine(_ context.Context, places []turns.LinePlace) ([]turns.LineView, error) {
	return make([]turns.LineView, len(places)), nil
}

// MarkFollowed implements live.Reader.
func (s *shelf) MarkFollowed(context.Context, []turns.FollowMark) error { return nil }
