package turns

import (
	"context"
	"errors"
	"strconv"
)

// decision is what a person makes of a held reply.
type decision struct {
	verb   Verb
	status Status
	reason Reason
	// made reports whether a reply stands as the decision wants it, so that a repeat of one that won answers like it.
	made func(row Reply) bool
	// write gives the reply what the decision adds to it; nil adds nothing.
	write func(row Reply) (Reply, error)
	// limited says that it puts a reply where a model's would be: a submission of whoever decides.
	limited bool
}

// ReleaseHeld gives a held reply up under the epoch that the caller has seen, which frees its slot. Its calls are closed by
// estimate, as wasted: if the provider answered, it billed. A reply that was released already is answered as it stands.
func (s *Service) ReleaseHeld(ctx context.Context, caller Caller, conversation ConversationID, id ReplyID, epoch int64) (Reply, error) {
	return s.decideHeld(ctx, caller, KeyOf(caller.Tenant, conversation), id, epoch, decision{
		verb: VerbRelease, status: StatusAbandoned, reason: ReasonHeldReleased,
		made: func(row Reply) bool { return row.Status == StatusAbandoned && row.Reason == ReasonHeldReleased },
	})
}

// decideHeld brings a decision about a held reply into force and reads the reply as it stands then. A resolution without an
// answer is not assumed: the row says what became of it.
func (s *Service) decideHeld(ctx context.Context, caller Caller, key ConversationKey, id ReplyID, epoch int64, d decision) (Reply, error) {
	if epoch <= 0 {
		return Reply{}, invalid("expected_epoch", "must be the epoch that the list of held replies shows, which is at least 1")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	var l allowance
	reply, made, err := s.decideRounds(ctx, caller, key, id, epoch, d, &l)
	s.settled(caller, &l, made, err)
	return reply, err
}

// decideRounds looks how a held reply stands and decides until the decision is in force. Made says that this one may have
// brought it into force, and not another like it.
func (s *Service) decideRounds(ctx context.Context, caller Caller, key ConversationKey, id ReplyID, epoch int64, d decision,
	l *allowance) (reply Reply, made bool, err error) {
	for range submitRounds {
		row, err := s.store.ReadReply(ctx, key, id)
		switch {
		case errors.Is(err, ErrNotFound):
			return Reply{}, false, NotFound("reply", "reply_id")
		case err != nil:
			return Reply{}, false, outOfTime(err)
		case row.Epoch != epoch:
			return Reply{}, false, staleEpoch(row, epoch)
		case d.made(row):
			return row, made, nil
		}
		if err := d.possible(row); err != nil {
			return Reply{}, false, err
		}
		if d.limited {
			if err := s.allow(ctx, caller, l); err != nil {
				return Reply{}, false, err
			}
		}
		won, _, err := s.tryDecision(ctx, caller.Tenant, key, row, d)
		unsure := errors.Is(err, ErrUnknownOutcome)
		if err != nil && !unsure {
			return Reply{}, false, outOfTime(err)
		}
		made = made || won || unsure
	}
	return Reply{}, false, lostRace()
}

// possible refuses a decision over a reply that it can't be made of.
func (d decision) possible(row Reply) error {
	switch {
	case row.Status != StatusHeld:
		return notHeld(row)
	case d.status == StatusComplete && row.CancelRequested:
		return &Error{Code: CodeWrongState, Field: "reply_id", Problem: "the reply was asked to stop, so it can't be completed any more",
			Meta: map[string]string{"status": string(row.Status)}}
	}
	return nil
}

// tryDecision writes a decision, and gives the calls that were open; none if the reply was not held any more.
func (s *Service) tryDecision(ctx context.Context, tenant Tenant, key ConversationKey, row Reply, d decision) (won bool, open []OpenCall, err error) {
	held, ok, err := s.heldLike(ctx, tenant, row)
	if err != nil || !ok {
		return false, nil, err
	}
	to, waste := row, string(d.reason)
	if d.write != nil {
		if to, err = d.write(row); err != nil {
			return false, nil, err
		}
	}
	calls, lost := s.lostCalls(key, to, held.OpenCalls, waste)
	won, err = s.resolveHeld(ctx, row, Resolution{
		Fence: Fence{Key: key, Reply: row.ID, Epoch: row.Epoch}, Verb: d.verb, Status: d.status, Reason: d.reason,
		Content: to.Content, Length: to.Length, StopReason: to.StopReason, Usage: held.Reply.Usage.Add(lost), Calls: calls,
	}, held.OpenCalls)
	return won, held.OpenCalls, err
}

// heldLike reads a held reply with its open calls, in the list's order the first from its own place on; ok is false if it is
// not held any more.
func (s *Service) heldLike(ctx context.Context, tenant Tenant, row Reply) (h HeldReply, ok bool, err error) {
	page, err := s.store.HeldReplies(ctx, HeldQuery{Tenant: tenant, AfterTime: row.CreateTime, AfterID: before(row.ID), Limit: 1})
	if err != nil || len(page) == 0 || page[0].Reply.ID != row.ID {
		return HeldReply{}, false, err
	}
	return page[0], true, nil
}

// before is the greatest id that is smaller.
func before(id ReplyID) ReplyID {
	for i := len(id.UUID) - 1; i >= 0; i-- {
		id.UUID[i]--
		if id.UUID[i] != 0xff {
			break
		}
	}
	return id
}

func staleEpoch(row Reply, seen int64) *Error {
	return &Error{Code: CodeStaleEpoch, Field: "expected_epoch",
		Problem: "the reply is of another epoch by now; look at it again, then decide anew",
		Meta:    map[string]string{"epoch": strconv.FormatInt(row.Epoch, 10), "expected_epoch": strconv.FormatInt(seen, 10), "status": string(row.Status)}}
}

func notHeld(row Reply) *Error {
	return &Error{Code: CodeWrongState, Field: "reply_id", Problem: "the reply is not held; nothing was changed",
		Meta: map[string]string{"status": string(row.Status), "reason": string(row.Reason)}}
}

// cancelHeld ends a held reply for somebody who asked for a stop, and names its newest call, for which the provider may be
// at work still; nil if there is none. What becomes of a stop that comes too late for it, the stop itself decides.
func (s *Service) cancelHeld(ctx context.Context, tenant Tenant, key ConversationKey, id ReplyID) (*LostCall, error) {
	ctx, cancel := context.WithTimeout(ctx, submitTime)
	defer cancel()
	row, err := s.store.ReadReply(ctx, key, id)
	if err != nil || row.Status != StatusHeld {
		return nil, err
	}
	_, open, err := s.tryDecision(ctx, tenant, key, row, decision{verb: VerbCancel, status: StatusAbandoned, reason: ReasonCancelled})
	if err != nil && !errors.Is(err, ErrUnknownOutcome) || len(open) == 0 {
		return nil, err
	}
	lost := s.lostOf(key, row, newest(open))
	return &lost, nil
}
