package casetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// shifted is a Store as a worker sees it whose clock differs from the database's: every time that it reads is off.
type shifted struct {
	turns.Store
	by time.Duration
}

func (s shifted) at(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(s.by)
}

func (s shifted) reply(r turns.Reply) turns.Reply {
	r.CreateTime, r.EndTime = s.at(r.CreateTime), s.at(r.EndTime)
	return r
}

func (s shifted) replyAt(r *turns.Reply) {
	if r != nil {
		*r = s.reply(*r)
	}
}

func (s shifted) turnAt(u *turns.UserTurn) {
	if u != nil {
		u.CreateTime = s.at(u.CreateTime)
	}
}

func (s shifted) Lookup(ctx context.Context, q turns.LookupQuery) (turns.Standing, error) {
	st, err := s.Store.Lookup(ctx, q)
	s.turnAt(st.Turn)
	for _, r := range []*turns.Reply{st.Running, st.Live, st.Newest, st.Cursor, st.LeafReply} {
		s.replyAt(r)
	}
	return st, err
}

func (s shifted) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) ([]turns.PathRow, error) {
	rows, err := s.Store.ReadPath(ctx, key, from, limit)
	for _, row := range rows {
		s.turnAt(row.User)
		s.replyAt(row.Reply)
	}
	return rows, err
}

func (s shifted) Claim(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	results, err := s.Store.Claim(ctx, claims)
	for i := range results {
		results[i].CreateTime = s.at(results[i].CreateTime)
	}
	return results, err
}

func (s shifted) End(ctx context.Context, endings []turns.Ending) ([]turns.EndResult, error) {
	results, err := s.Store.End(ctx, endings)
	for i := range results {
		results[i].EndTime = s.at(results[i].EndTime)
	}
	return results, err
}

func (s shifted) StaleReplies(ctx context.Context, q turns.StaleQuery) ([]turns.StaleReply, error) {
	stale, err := s.Store.StaleReplies(ctx, q)
	for i := range stale {
		s.replyAt(&stale[i].Reply)
	}
	return stale, err
}

func (s shifted) ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (turns.Reply, error) {
	r, err := s.Store.ReadReply(ctx, key, id)
	return s.reply(r), err
}

func (s shifted) ReadLogs(ctx context.Context, positions []turns.LogPosition) ([]turns.LogView, error) {
	views, err := s.Store.ReadLogs(ctx, positions)
	for i := range views {
		s.replyAt(&views[i].Reply)
	}
	return views, err
}

func (s shifted) FindTurn(ctx context.Context, key turns.ConversationKey, id turns.RowID) (turns.UserTurn, error) {
	u, err := s.Store.FindTurn(ctx, key, id)
	s.turnAt(&u)
	return u, err
}

func (s shifted) RepliesTo(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) ([]turns.Reply, error) {
	replies, err := s.Store.RepliesTo(ctx, key, turn, limit)
	for i := range replies {
		s.replyAt(&replies[i])
	}
	return replies, err
}

// TestAWorkerWhoseClockIsHoursOffBehavesAsTheOthers plays a claim, a wait, a death and a takeover beside such a worker.
func TestAWorkerWhoseClockIsHoursOffBehavesAsTheOthers(t *testing.T) {
	for _, by := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.short()
				dying, die := w.cutOff()
				off := w.serveOn(shifted{w.store(), by})
				tooLong := failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Error: "rate_limit_error",
					Headers: map[string]string{"retry-after": "600"}})
				short := failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"})
				held := gate("", "never", 64, 20)
				held.Times = 1
				w.script(tooLong, short, held, plain(16))
				in := ask(newID(), newID(), "asked too early")
				got := off.turn(in, nil).abandons(providerError)
				require.InDelta(t, 600, got.abandoned.GetRetryDelay().AsDuration().Seconds(), 5)
				require.Equal(t, replayed, off.turn(in, nil).abandons(providerError).result, "it is still too early")
				lost := ask(newID(), newID(), "hi")
				s := dying.turn(lost, nil)
				s.at(1 + 19*16)
				w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 300`) == 1 })
				die()
				w.eventually(func() bool { return w.number(qInFlight) == 0 })
				require.Equal(t, retried, off.turn(lost, nil).completes().result, "the other's lease was judged by the database")
				w.stands(map[string]int{qOpen: 0, `SELECT count(*) FROM workers WHERE dead`: 1})
				w.paid(4, 2)
			})
		})
	}
}
