package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// perMinute is what one subject may submit in the check, over all processes together.
const perMinute = 60

// limits runs three processes on one Postgres. Requests are spread over them by their turn, as a load balancer would.
func limits(l *lab) error {
	e, err := l.postgres("limits")
	if err != nil {
		return err
	}
	p := &limitsPlay{lab: l, e: e}
	if err := p.setUp(); err != nil {
		return err
	}
	for _, scene := range []struct {
		name string
		play func() error
	}{
		{"probes", p.probes}, {"a lost response", p.lostResponse}, {"a definite failure", p.definiteFailure},
		{"many at once", p.atOnce}, {"a hold", p.hold},
	} {
		if err := scene.play(); err != nil {
			return fmt.Errorf("%s: %w", scene.name, err)
		}
	}
	return nil
}

type limitsPlay struct {
	*lab
	e        engine
	provider *provider
	// rated have a limit a minute, daily a quota of one turn a day.
	rated, daily []*service
}

func (p *limitsPlay) setUp() (err error) {
	p.provider, err = p.lab.provider(object{"rules": []object{
		{"name": "refused", "match": object{"text": "refused$"}, "times": 2, "plan": faulty(object{"at": "request_read", "do": "status", "status": 500, "error": "api_error"})},
		{"name": "lost", "match": object{"text": "lost$"}, "times": 1, "plan": faulty(object{"at": "before_headers", "do": "reset"})},
		gated("waits$", "waits", againDeltas, 4),
		plain(againDeltas),
	}})
	if err != nil {
		return err
	}
	models, err := p.models(p.provider.url)
	if err != nil {
		return err
	}
	for range 3 {
		rated, err := p.serve(p.e, models, fmt.Sprintf("--submissions-per-minute=%d", perMinute))
		if err != nil {
			return err
		}
		daily, err := p.serve(p.e, models, "--subject-turns-per-day=1", "--max-calls=2", "--backoff=10ms")
		if err != nil {
			return err
		}
		p.rated, p.daily = append(p.rated, rated), append(p.daily, daily)
	}
	return nil
}

// processOf is the one that a turn goes to.
func processOf(of []*service, turn string) *service {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn))
	return of[int(h.Sum32()%uint32(len(of)))] //nolint:gosec // three at most
}

// as names the subject that calls.
func (p *limitsPlay) as(subject string) context.Context {
	return metadata.AppendToOutgoingContext(p.ctx, "x-turnd-subject", subject)
}

func (p *limitsPlay) submit(of []*service, subject string, in *turnsv1.TurnInput) (*turnsv1.SubmitTurnResponse, error) {
	return processOf(of, in.GetTurnId()).turns.SubmitTurn(p.as(subject), &turnsv1.SubmitTurnRequest{Input: in})
}

// probes sends ten thousand unknown ids as fast as they are answered, and between them one turn that is known.
func (p *limitsPlay) probes() error {
	total, senders := 10_000, 16
	if p.short {
		total = 1_500
	}
	known := textInput(uuid.NewString(), uuid.NewString(), "known", "anthropic")
	first, err := p.submit(p.rated, "prober", known)
	if err != nil {
		return err
	}
	if err := p.ends(known); err != nil {
		return err
	}
	before, err := p.provider.counts()
	if err != nil {
		return err
	}
	var let, limited, replayed atomic.Int64
	errs := make([]error, senders)
	started := time.Now()
	var all sync.WaitGroup
	for n := range senders {
		all.Go(func() {
			for i := n; i < total && errs[n] == nil; i += senders {
				if _, err := p.submit(p.rated, "prober", textInput(uuid.NewString(), uuid.NewString(), "probe", "anthropic")); err == nil {
					let.Add(1)
				} else if errs[n] = refusedFor(err, "RATE_LIMITED", time.Minute); errs[n] == nil {
					limited.Add(1)
				}
				if i%10 != 0 || errs[n] != nil {
					continue
				}
				// The same turn goes to each process in its turn: a repeat may come in anywhere.
				again, err := p.rated[i/10%len(p.rated)].turns.SubmitTurn(p.as("prober"), &turnsv1.SubmitTurnRequest{Input: known})
				switch {
				case err != nil:
					errs[n] = fmt.Errorf("a replay was refused: %w", err)
				case again.GetResult() != turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED || again.GetReply().GetReplyId() != first.GetReply().GetReplyId():
					errs[n] = fmt.Errorf("a replay answered %v", again.GetResult())
				default:
					replayed.Add(1)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(started)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// A bucket holds a minute's worth and fills by one a second.
	most := int64(perMinute) + int64(took.Seconds()*perMinute/60) + 1
	if n := let.Load(); n > most || n < perMinute-1 {
		return fmt.Errorf("%d of %d probes in %s were let in; the limit allows %d", n, total, took, most)
	}
	if err := p.settles(p.e, `SELECT count(*) FROM turns WHERE status = 'in_flight'`, 0); err != nil {
		return err
	}
	after, err := p.provider.counts()
	if err != nil {
		return err
	}
	if after.Requests-before.Requests != int(let.Load()) {
		return fmt.Errorf("%d probes were let in and the provider was asked %d times", let.Load(), after.Requests-before.Requests)
	}
	figure("processes", len(p.rated))
	figure("unknown_ids", total)
	figure("unknown_ids_a_minute", int(float64(total)/took.Minutes()))
	figure("let_in", let.Load())
	figure("limit_allows", most)
	figure("limited", limited.Load())
	figure("replays_answered", replayed.Load())
	return nil
}

// lostResponse gives up on a submission before its answer, sends it again elsewhere, and then asks for another turn.
func (p *limitsPlay) lostResponse() error {
	in := textInput(uuid.NewString(), uuid.NewString(), "waits", "anthropic")
	ctx, leave := context.WithCancel(p.as("loser"))
	defer leave()
	stream, err := p.daily[0].turns.Turn(ctx, &turnsv1.TurnRequest{Input: in})
	if err != nil {
		return err
	}
	if err := p.provider.arrived("waits", 1); err != nil {
		return err
	}
	leave()
	for err == nil {
		_, err = stream.Recv()
	}
	for _, s := range p.daily[1:] {
		again, err := s.turns.SubmitTurn(p.as("loser"), &turnsv1.SubmitTurnRequest{Input: in})
		if err != nil {
			return fmt.Errorf("the retry was refused: %w", err)
		}
		if again.GetResult() != turnsv1.DeliveryResult_DELIVERY_RESULT_ATTACHED {
			return fmt.Errorf("the retry answered %v", again.GetResult())
		}
	}
	if err := p.another("loser"); err != nil {
		return fmt.Errorf("while it runs: %w", err)
	}
	if err := p.provider.open("waits"); err != nil {
		return err
	}
	if err := p.ends(in); err != nil {
		return err
	}
	if again, err := p.submit(p.daily, "loser", in); err != nil || again.GetResult() != turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED {
		return fmt.Errorf("a replay with the quota used up answered %v: %w", again.GetResult(), err)
	}
	if err := p.another("loser"); err != nil {
		return err
	}
	if err := p.used("loser", 1); err != nil {
		return err
	}
	figure("lost_response_used", 1)
	return nil
}

// definiteFailure lets a turn fail for certain, which gives its place back; made anew it succeeds and takes it.
func (p *limitsPlay) definiteFailure() error {
	in := textInput(uuid.NewString(), uuid.NewString(), "refused", "anthropic")
	got, err := p.submit(p.daily, "unlucky", in)
	if err != nil {
		return err
	}
	if err := p.settles(p.e, `SELECT count(*) FROM turns WHERE reason = 'provider_error'`, 1); err != nil {
		return err
	}
	if err := p.used("unlucky", 0); err != nil {
		return err
	}
	figure("definite_failure_used", 0)
	again := &turnsv1.RegenerateReplyRequest{ConversationId: in.GetConversationId(), ReplyId: got.GetReply().GetReplyId()}
	for _, s := range p.daily { // the second and third are repeats of the first
		if _, err := s.turns.RegenerateReply(p.as("unlucky"), again); err != nil {
			return fmt.Errorf("what was given back can't be used: %w", err)
		}
	}
	if err := p.ends(in); err != nil {
		return err
	}
	if err := p.used("unlucky", 1); err != nil {
		return err
	}
	figure("after_trying_again_used", 1)
	return p.another("unlucky")
}

// atOnce sends thirty turns of one subject to all processes at the same time.
func (p *limitsPlay) atOnce() error {
	const many = 30
	var let atomic.Int64
	errs := make([]error, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			_, err := p.submit(p.daily, "crowd", textInput(uuid.NewString(), uuid.NewString(), "crowd", "anthropic"))
			if err == nil {
				let.Add(1)
				return
			}
			errs[i] = refusedFor(err, "QUOTA_EXCEEDED", 24*time.Hour)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if let.Load() != 1 {
		return fmt.Errorf("%d of %d turns took the one place", let.Load(), many)
	}
	figure("at_once", many)
	figure("at_once_let_in", let.Load())
	return p.used("crowd", 1)
}

// hold loses the answer of a turn whose policy is to hold; an operator releases it.
func (p *limitsPlay) hold() error {
	in := textInput(uuid.NewString(), uuid.NewString(), "lost", "anthropic")
	in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD
	got, err := p.submit(p.daily, "holder", in)
	if err != nil {
		return err
	}
	if err := p.settles(p.e, `SELECT count(*) FROM turns WHERE status = 'held'`, 1); err != nil {
		return err
	}
	if err := errors.Join(p.used("holder", 1), p.another("holder")); err != nil {
		return fmt.Errorf("while it is held: %w", err)
	}
	operator := turnsv1.NewOperatorServiceClient(p.daily[0].conn)
	if _, err := operator.ReleaseHeldReply(p.as("holder"), &turnsv1.ReleaseHeldReplyRequest{ConversationId: in.GetConversationId(),
		ReplyId: got.GetReply().GetReplyId(), ExpectedEpoch: 1}); err != nil {
		return err
	}
	if err := p.used("holder", 0); err != nil {
		return err
	}
	figure("held_used", 1)
	figure("released_used", 0)
	other := textInput(uuid.NewString(), uuid.NewString(), "another", "anthropic")
	if _, err := p.submit(p.daily, "holder", other); err != nil {
		return fmt.Errorf("what the release gave back can't be used: %w", err)
	}
	return p.used("holder", 1)
}

// another expects that one more turn of a subject is refused by its quota, on each process.
func (p *limitsPlay) another(subject string) error {
	for _, s := range p.daily {
		_, err := s.turns.SubmitTurn(p.as(subject), &turnsv1.SubmitTurnRequest{Input: textInput(uuid.NewString(), uuid.NewString(), "another", "anthropic")})
		if err := refusedFor(err, "QUOTA_EXCEEDED", 24*time.Hour); err != nil {
			return err
		}
	}
	return nil
}

// used waits until a subject's quota of today stands at a number of turns. A settlement comes soon after an ending and not with
// it, so that the number may be higher for a moment.
func (p *limitsPlay) used(subject string, want int) error {
	query := fmt.Sprintf(`SELECT COALESCE(sum(turns), 0)::int FROM quotas WHERE subject = '%s'`, subject)
	if err := p.settles(p.e, query, want); err != nil {
		return fmt.Errorf("the quota of %s does not come to %d: %w", subject, want, err)
	}
	return nil
}

// ends waits until a turn has a complete reply.
func (p *limitsPlay) ends(in *turnsv1.TurnInput) error {
	return p.settles(p.e, fmt.Sprintf(`SELECT count(*) FROM turns WHERE responds_to = '%s' AND status = 'complete'`, in.GetTurnId()), 1)
}

// refusedFor checks that a call was refused for a reason, and that it says when to come again: not at once, and within a time.
func refusedFor(err error, reason string, within time.Duration) error {
	st := status.Convert(err)
	var info *errdetails.ErrorInfo
	var retry *errdetails.RetryInfo
	var quota *errdetails.QuotaFailure
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			quota = d
		}
	}
	switch {
	case st.Code() != codes.ResourceExhausted || info.GetReason() != reason:
		return fmt.Errorf("refused with %s and not for %s: %w", info.GetReason(), reason, err)
	case info.GetMetadata()["retry"] != "SAME_ID_AFTER_WAIT":
		return fmt.Errorf("%s advises %s", reason, info.GetMetadata()["retry"])
	case retry == nil || retry.GetRetryDelay().AsDuration() <= 0 || retry.GetRetryDelay().AsDuration() > within:
		return fmt.Errorf("%s says to come again in %v", reason, retry.GetRetryDelay().AsDuration())
	case reason == "QUOTA_EXCEEDED" && len(quota.GetViolations()) == 0:
		return errors.New("QUOTA_EXCEEDED without a QuotaFailure")
	}
	return nil
}
