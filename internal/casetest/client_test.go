package casetest

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// stream is one Turn or FollowReply under way. Its fields may be read once done is closed, or between the waits of until.
type stream struct {
	w      *worker
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	state
}

// state is what a stream has said.
type state struct {
	first     string // kind of the first event
	result    turnsv1.DeliveryResult
	turn      *turnsv1.UserTurn
	reply     string
	places    []int32 // in line, as they were told
	restarted *turnsv1.Restarted
	text      string
	offset    uint32
	events    int
	completed *turnsv1.Completed
	abandoned *turnsv1.Abandoned
	held      *turnsv1.Held
	err       error
	gap       bool
}

// turn delivers a turn and goes on hearing in the background.
func (w *worker) turn(in *turnsv1.TurnInput, cursor *turnsv1.Cursor) *stream {
	ctx, cancel := context.WithCancel(w.ctx)
	s := &stream{w: w, cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	rpc, err := w.turns.Turn(ctx, &turnsv1.TurnRequest{Input: in, Cursor: cursor})
	require.NoError(w.t, err)
	s.start(cursor, func() (*turnsv1.Event, error) {
		m, err := rpc.Recv()
		return m.GetEvent(), err
	})
	return s
}

// follow follows a reply from an offset.
func (w *worker) follow(conversation, reply string, offset uint32) *stream {
	ctx, cancel := context.WithCancel(w.ctx)
	s := &stream{w: w, cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	rpc, err := w.turns.FollowReply(ctx, &turnsv1.FollowReplyRequest{ConversationId: conversation,
		Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: reply}, Offset: offset})
	require.NoError(w.t, err)
	s.start(&turnsv1.Cursor{ReplyId: reply, Offset: offset}, func() (*turnsv1.Event, error) {
		m, err := rpc.Recv()
		return m.GetEvent(), err
	})
	return s
}

func (s *stream) start(cursor *turnsv1.Cursor, recv func() (*turnsv1.Event, error)) {
	go func() {
		defer close(s.done)
		defer s.cancel()
		for {
			e, err := recv()
			if errors.Is(err, io.EOF) {
				return
			}
			s.mu.Lock()
			if err != nil {
				s.err = err
			} else {
				s.take(e, cursor)
			}
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

// take notes one event; a log event that does not start where the last one ended is a gap or a repeat.
func (s *stream) take(e *turnsv1.Event, cursor *turnsv1.Cursor) {
	kind := "log"
	switch k := e.GetKind().(type) {
	case *turnsv1.Event_Accepted:
		kind, s.result, s.turn = "accepted", k.Accepted.GetResult(), k.Accepted.GetTurn()
	case *turnsv1.Event_Queued:
		kind, s.places = "queued", append(s.places, k.Queued.GetPosition())
	case *turnsv1.Event_Restarted:
		kind, s.restarted = "restarted", k.Restarted
		if !k.Restarted.GetContinues() {
			s.text = ""
		}
		s.offset = e.GetOffset()
	case *turnsv1.Event_Started:
		kind, s.reply = "started", e.GetReplyId()
		if cursor.GetReplyId() == s.reply {
			s.offset = cursor.GetOffset()
		}
	case *turnsv1.Event_Completed:
		kind, s.completed = "completed", k.Completed
	case *turnsv1.Event_Abandoned:
		kind, s.abandoned = "abandoned", k.Abandoned
	case *turnsv1.Event_Held:
		kind, s.held = "held", k.Held
	case *turnsv1.Event_Heartbeat:
		kind = "heartbeat"
	case *turnsv1.Event_Delta:
		s.text += k.Delta.GetText()
	}
	if s.events == 0 {
		s.first = kind
	}
	s.events++
	if kind == "log" {
		s.gap = s.gap || e.GetOffset() != s.offset
		s.offset = e.GetNextOffset()
	}
}

// until waits until what was heard satisfies a condition, and gives a copy of it.
func (s *stream) until(holds func(state) bool) state {
	s.w.t.Helper()
	for {
		s.mu.Lock()
		now, changed := s.state, s.changed
		s.mu.Unlock()
		if holds(now) {
			return now
		}
		select {
		case <-changed:
		case <-s.done:
			s.mu.Lock()
			now = s.state
			s.mu.Unlock()
			require.True(s.w.t, holds(now), "the stream ended first: %+v", now)
			return now
		case <-s.w.ctx.Done():
			require.Fail(s.w.t, "waited in vain", "%+v", now)
		}
	}
}

// at waits for an offset.
func (s *stream) at(offset uint32) state {
	s.w.t.Helper()
	return s.until(func(s state) bool { return s.offset >= offset })
}

// end waits for the stream's end.
func (s *stream) end() state {
	s.w.t.Helper()
	select {
	case <-s.done:
	case <-s.w.ctx.Done():
		require.Fail(s.w.t, "the stream did not end")
	}
	return s.state
}

// completes waits for the end and demands that it is a whole reply without a gap.
func (s *stream) completes() state {
	s.w.t.Helper()
	got := s.end()
	require.NoError(s.w.t, got.err)
	require.NotNil(s.w.t, got.completed, "%+v", got)
	require.Nil(s.w.t, got.abandoned)
	require.False(s.w.t, got.gap)
	return got
}

// abandons waits for the end and demands the reason.
func (s *stream) abandons(reason turnsv1.AbandonReason) state {
	s.w.t.Helper()
	got := s.end()
	require.NoError(s.w.t, got.err)
	require.NotNil(s.w.t, got.abandoned, "%+v", got)
	require.Equal(s.w.t, reason, got.abandoned.GetReason())
	return got
}

// fails demands a status with a reason and an advice, and gives its metadata.
func (w *world) fails(err error, code codes.Code, reason, advice string) map[string]string {
	w.t.Helper()
	require.Error(w.t, err)
	st := status.Convert(err)
	require.Equal(w.t, code, st.Code(), "%v", err)
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			require.Equal(w.t, "turnd", info.GetDomain())
			require.Equal(w.t, reason, info.GetReason())
			require.Equal(w.t, advice, info.GetMetadata()["retry"])
			return info.GetMetadata()
		}
	}
	require.Fail(w.t, "no ErrorInfo", "%v", err)
	return nil
}

// submit delivers a turn without following it.
func (w *worker) submit(in *turnsv1.TurnInput) (*turnsv1.SubmitTurnResponse, error) {
	return w.turns.SubmitTurn(w.ctx, &turnsv1.SubmitTurnRequest{Input: in})
}

// read reads a turn and its replies.
func (w *worker) read(conversation, turn string) *turnsv1.GetTurnResponse {
	w.t.Helper()
	got, err := w.turns.GetTurn(w.ctx, &turnsv1.GetTurnRequest{ConversationId: conversation, Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turn}})
	require.NoError(w.t, err)
	return got
}

// stored is a reply's text as it is stored.
func stored(r *turnsv1.Reply) string {
	var text string
	for _, b := range r.GetContent() {
		text += b.GetText().GetText()
	}
	return text
}
