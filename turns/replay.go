package turns

import (
	"context"
	"errors"
	"time"
)

const (
	// replayBatch bounds the spooled endings that are in memory at once: each may be as large as a reply.
	replayBatch = 4
	// replayTries is how often the same ending is written again within one pass, as its stored log turns out to have another
	// length.
	replayTries = 3
)

// replaying is what the loop that replays the spool knows from one pass to the next.
type replaying struct {
	// done says that the last pass left nothing to do, and spooled what Service.spooled was then: only a run of this process
	// that gives up adds to it.
	done    bool
	spooled int
	// failed counts how often the database answered a reply's ending with an error of its own. One that failed too often is
	// passed over until the next start; the same goes for one that the database has no place for, which may be another
	// database's.
	failed map[ReplyID]int
	// tried are those that were not stored in this pass.
	tried map[ReplyID]bool
}

// replay writes endings that lie in the spool, of this process and of those before it. Each is judged by the same guarded
// writes as when its run ended: under the old fence if the claim still stands, else salvaged, settled, or put back. It
// leaves the spool once the outcome is known. A database that is away ends the pass; the next one goes on.
func (s *Service) replay(ctx context.Context) {
	p := &s.replaying
	s.mu.Lock()
	spooled := s.spooled
	s.mu.Unlock()
	if p.done && p.spooled == spooled {
		return
	}
	p.done, p.spooled, p.tried = false, spooled, map[ReplyID]bool{}
	for ctx.Err() == nil {
		kept, err := s.spool.Kept(ctx, replayBatch, s.passOver)
		if err != nil {
			s.logger.WarnContext(ctx, "spool not read", "err", err)
			return
		}
		if len(kept) == 0 {
			p.done = len(p.tried) == 0
			return
		}
		for _, k := range kept {
			if away := s.replayed(ctx, k); away {
				return
			}
		}
	}
}

// passOver tells replies whose ending is not to be replayed: its run is still at it, it was tried in this pass, or it failed
// too often.
func (s *Service) passOver(id ReplyID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id] != nil || s.replaying.tried[id] || s.replaying.failed[id] >= refusals
}

// replayed replays an ending and takes it out of the spool; away says that the database can't be reached.
func (s *Service) replayed(ctx context.Context, k Spooled) (away bool) {
	f := k.Ending.Fence
	err := s.replayOne(ctx, k)
	if err == nil {
		err = s.spool.Drop(context.WithoutCancel(ctx), f)
	}
	if err == nil {
		return false
	}
	s.logger.WarnContext(ctx, "spooled ending not stored yet", "reply_id", f.Reply.String(), "turn_id", k.Reply.Turn.String(), "err", err)
	if !answered(err) {
		return true
	}
	s.replaying.tried[f.Reply] = true
	if s.replaying.failed == nil {
		s.replaying.failed = map[ReplyID]int{}
	}
	s.replaying.failed[f.Reply]++
	if errors.Is(err, errNoPlace) {
		s.replaying.failed[f.Reply] = refusals
	}
	if s.replaying.failed[f.Reply] >= refusals {
		s.logger.ErrorContext(ctx, "spooled ending is passed over until the next start", "reply_id", f.Reply.String(), "turn_id", k.Reply.Turn.String())
	}
	return false
}

// replayOne writes one ending and counts it as its run would have. Without an error its outcome is known.
func (s *Service) replayOne(ctx context.Context, k Spooled) error {
	r := s.runOf(k)
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &finishing{run: r, ending: k.Ending, keptAs: k.Ending.Fence}
	var problem error
	for range replayTries {
		ended, ok, err := f.store(ctx)
		if err == nil {
			r.announce(ctx, f.ending, ended, ok)
			s.logger.InfoContext(ctx, "spooled ending replayed", "reply_id", r.reply.ID.String(), "turn_id", r.reply.Turn.String(), "stored", ok)
			return nil
		}
		problem = err
		if !errors.Is(err, errPutBack) && (!answered(err) || errors.Is(err, errNoPlace)) {
			break
		}
	}
	f.keep(ctx) // under its new fence, if its row was put back
	return problem
}

// runOf is the run that an ending was spooled by, as far as it is needed to end it.
func (s *Service) runOf(k Spooled) *run {
	e := k.Ending
	r := &run{
		Service: s, key: e.Fence.Key, fence: e.Fence, claim: k.Claim, reply: k.Reply, call: &k.Call, unclosed: k.Unclosed,
		request: Request{Route: k.Claim.Reply.Route, BuilderVersion: k.Claim.Reply.BuilderVersion},
		stored:  e.StoredLength, usage: e.Usage, over: true, cancel: func(error) {},
		reviver: k.Reviver,
		log:     &keptLog{first: k.First, pieces: e.Content, length: e.Length},
	}
	for _, p := range k.Past {
		r.past = append(r.past, pastCall{p.Call, p.Outcome})
	}
	if e.ResponseID != "" {
		r.responseID.Store(&e.ResponseID)
	}
	return r
}

// keptLog is the log of a reply that has ended, as it was spooled, from an offset on. Nobody follows it.
type keptLog struct {
	first  uint32
	pieces []Piece
	length uint32
}

// errEnded is what a log that was spooled answers to more of it.
var errEnded = errors.New("the log has ended")

func (l *keptLog) Append(Piece) error { return errEnded }
func (l *keptLog) First() uint32      { return l.first }
func (l *keptLog) Len() uint32        { return l.length }
func (l *keptLog) HasContent() bool   { return l.length > 0 }
func (l *keptLog) Stored(uint32)      {}
func (l *keptLog) Renewed(int64)      {}
func (l *keptLog) End(Reply)          {}
func (l *keptLog) Stall(error)        {}
func (l *keptLog) Move()              {}

func (l *keptLog) Watched() (int, time.Time) { return 0, time.Time{} }

func (l *keptLog) Tail(from uint32) ([]Piece, uint32) {
	if from != l.first {
		return nil, l.length
	}
	return l.pieces, l.length
}
