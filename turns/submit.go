package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/turnd/turnd/internal/instrument"
)

// submitRounds bounds how often a delivery that lost a race looks again, and submitTime how long it goes on after its
// sender has left: a claim must not be torn off half way.
const (
	submitRounds = 8
	submitTime   = 15 * time.Second
)

// replayedAtOnce is how long a complete reply may be whose content is read with its turn's standing; a longer one is read when
// it is followed.
const replayedAtOnce = 64 << 10

// unsurePause is the wait before a claim of unknown outcome is looked for.
const unsurePause = 50 * time.Millisecond

// errLeaseOut keeps a worker from claiming what it could not act on.
var errLeaseOut = errors.New("this worker's lease may have run out")

// replyGrace is added to what a reply may take by its limits before any worker may end it.
const replyGrace = 30 * time.Second

// Submission is what a delivery came to.
type Submission struct {
	Key ConversationKey
	// Turn is the stored user turn, without content.
	Turn UserTurn
	// Reply is the one to follow, from Offset on. It is with content, and Replayable, only if it was complete and short.
	Reply  Reply
	Offset uint32
	Result DeliveryResult
	// Restarted is set if the delivery's cursor names another reply than Reply.
	Restarted *Restarted
	// Waiting says that the turn is in line, with Position turns before it, and has no reply yet.
	Waiting  bool
	Position int
	// Saves is the layer whose repeat the end of the reply will have answered, for FollowedToEnd; empty where there is none,
	// or the reply's own run counts it.
	Saves Layer

	repeats bool // it was known before
}

// Submit takes a delivery of a user turn. A turn that is known with the same input is attached to its running reply, or
// answered with its finished one, which costs nothing; a new one is claimed, and its reply goes on whatever becomes of
// the caller. Fails with the codes of Error; nothing is written then, except that a lost commit may have been.
func (s *Service) Submit(ctx context.Context, caller Caller, d Delivery) (Submission, error) {
	ctx, span := s.tracer.start(ctx, instrument.SpanSubmit)
	defer span.End()
	d.Input = d.Input.Normalise()
	sub, err := s.submit(ctx, caller, d)
	taken(span, d.Input.Turn, sub, err)
	if err != nil {
		s.metrics.submission(ctx, strings.ToLower(string(CodeOf(err))))
		return Submission{}, err
	}
	s.metrics.submission(ctx, string(sub.Result))
	if sub.repeats {
		s.metrics.duplicate(ctx, d.layer())
		s.repeats.note(sub.Key, sub.Turn.ID, d.layer(), time.Now())
		s.repeated(ctx, &sub, d.layer())
	}
	return sub, nil
}

func (s *Service) submit(ctx context.Context, caller Caller, d Delivery) (Submission, error) {
	if err := d.validate(s.set.MaxContentBytes); err != nil {
		return Submission{}, err
	}
	looked, err := s.look(caller)
	if err != nil {
		return Submission{}, err
	}
	defer looked()
	arrived := time.Now()
	sender := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	a := &arrival{Service: s, sender: sender, caller: caller, Delivery: d, key: d.Input.Key(caller.Tenant),
		hash: HashInput(d.Input), reply: ReplyID{newID()}, call: CallID{newID()}, looked: looked, arrived: arrived}
	defer a.release()
	sub, err := a.rounds(ctx)
	s.settled(caller, &a.allowance, sub.Result == ResultRetried || !sub.repeats, err)
	return sub, err
}

// rounds looks how things stand and acts on it until the delivery has its answer.
func (a *arrival) rounds(ctx context.Context) (Submission, error) {
	for range submitRounds {
		sub, done, err := a.round(ctx)
		if done || err != nil {
			return sub, outOfTime(err)
		}
	}
	if turn, err := a.store.FindTurn(ctx, a.key, a.Input.Turn.Row()); err == nil && turn.ID != a.Input.Turn {
		return Submission{}, &Error{Code: CodeTurnReused, Field: "input.turn_id", Problem: "is the id of a reply; mint another",
			Meta: map[string]string{"resource": "turn"}}
	}
	return Submission{}, lostRace()
}

// outOfTime tells our own time limit, which only a slow database reaches, from the caller's, which is not in force here.
func outOfTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return Unavailable(err)
	}
	return err
}

func lostRace() error {
	return &Error{Code: CodeConflict, Problem: "lost a race several times over; send the same request again", RetryAfter: 100 * time.Millisecond}
}

// arrival is one delivery on its way through Submit. Its reply and call ids are minted before the first try, so that a
// claim whose commit got no answer is found again by them.
type arrival struct {
	*Service
	Delivery
	caller Caller
	key    ConversationKey
	hash   []byte
	reply  ReplyID
	call   CallID
	// pending is the claim that was sent last, if one was: its outcome may be unknown.
	pending *pendingRun
	// regenerate is set if this is no delivery but a regenerate.
	regenerate *Regeneration
	// unsure says that the pending claim was sent and its outcome is unknown.
	unsure bool
	// sender is the context of the request, which bounds the wait for a place and nothing else.
	sender context.Context
	// arrived is when it came.
	arrived time.Time
	// stopped says that a reply was stopped for it, after its caps were asked.
	stopped bool
	// admitted says that a place among the running replies is taken for it.
	admitted bool
	// starts is set if this is no delivery but the start of a turn in line.
	starts bool
	// enqueued says that the turn was sent to the line and that the outcome of that is unknown.
	enqueued bool
	// beside is the turn whose reply it stopped to take its place.
	beside *UserTurn
	// looked is to be called once it is known how things stand.
	looked func()
	// settledOpen says that what has ended of its subject or tenant was settled for it.
	settledOpen bool
	allowance
}

// pendingRun is a claim together with what is needed to run it once it is won.
type pendingRun struct {
	claim   Claim
	request Request
	// made are the options that the request is built with.
	made layers
	// turn is the user turn as it is stored, whether the claim stores it or found it.
	turn *NewTurn
	// limit is the most time the run takes from the claim on.
	limit time.Duration
	// kept is what the reply's log begins with: the text of an attempt before it that it goes on from.
	kept []Piece
	// span is that of the claim or takeover, below which the run goes on.
	span trace.SpanContext
	// arrived is when the delivery came that makes the turn; zero for every other.
	arrived time.Time
}

// round looks how things stand and acts on it once; done is false if the claim was lost and must be looked at again.
func (a *arrival) round(ctx context.Context) (sub Submission, done bool, err error) {
	st, err := a.lookup(ctx, a.query())
	a.looked()
	if err != nil {
		return sub, false, err
	}
	if st.Deleted {
		return sub, false, ConversationDeleted()
	}
	if a.pending != nil && st.Newest != nil && st.Newest.ID == a.reply && st.Newest.Status == StatusInFlight {
		return a.won(ctx, st, *st.Newest), true, nil
	}
	if st.Turn != nil {
		sub, known, err := a.known(ctx, st)
		if known || err != nil {
			return sub, true, err
		}
	}
	if err := a.allow(ctx, a.caller, &a.allowance); err != nil {
		return sub, false, err
	}
	if err := a.checkCursor(ctx, st); err != nil {
		return sub, false, err
	}
	return a.claim(ctx, st)
}

func (a *arrival) query() LookupQuery {
	q := LookupQuery{Tenant: a.caller.Tenant, Key: a.key, Turn: a.Input.Turn, Parent: a.Input.Parent,
		Beside: a.OnBusy == OnBusySupersede, ContentUpTo: replayedAtOnce}
	if a.Cursor != nil {
		q.Cursor = a.Cursor.Reply
	}
	return q
}

// lookup reads how things stand. A reply in flight whose lease has run out is resolved first, so that nobody is told of
// a reply that nobody makes.
func (s *Service) lookup(ctx context.Context, q LookupQuery) (Standing, error) {
	st, err := s.store.Lookup(ctx, q)
	if err != nil || st.Running == nil || !st.Running.stale() {
		return st, err
	}
	if err := s.resolve(ctx, q.Key); err != nil {
		return Standing{}, err
	}
	return s.store.Lookup(ctx, q)
}

// stale reports a reply in flight whose owner is dead or out of its lease.
func (r Reply) stale() bool {
	return r.Status == StatusInFlight && (r.OwnerDead || r.LeaseLeft < 0)
}

// known answers a delivery of a stored turn, unless it is to make a new attempt.
func (a *arrival) known(ctx context.Context, st Standing) (Submission, bool, error) {
	if string(st.InputHash) != string(a.hash) {
		return Submission{}, true, &Error{Code: CodeTurnReused, Field: "input.turn_id",
			Problem: "is known with another input; send a new turn under a new id", Meta: map[string]string{"resource": "turn"}}
	}
	if st.erased() {
		gone := TurnDeleted()
		gone.Field = "input.turn_id"
		return Submission{}, true, gone
	}
	if err := a.checkCursor(ctx, st); err != nil {
		return Submission{}, true, err
	}
	switch place := st.placeInLine(a.Input.Turn); {
	case place >= 0:
		a.advanceSoon(a.key)
		return a.queued(*st.Turn, place, !a.enqueued), true, nil
	case st.Live != nil && st.Live.Status == StatusInFlight:
		return a.answer(ctx, st, *st.Live, ResultAttached), true, nil
	case st.Live != nil:
		return a.answer(ctx, st, *st.Live, ResultReplayed), true, nil
	case st.Newest == nil:
		return Submission{}, true, &Error{Code: CodeInternal, Problem: "the turn has no reply"}
	case a.curable(st):
		return Submission{}, false, nil
	default:
		return a.answer(ctx, st, *st.Newest, ResultReplayed), true, nil
	}
}

// curable reports whether this delivery makes a new attempt: the last one ended in a way that trying again can cure,
// calls are left, the provider's wish to wait has passed, and no later turn was started.
func (a *arrival) curable(st Standing) bool {
	r := st.Newest
	if !r.Reason.Curable() || r.Calls >= a.set.MaxCalls || st.CancelledGeneration >= r.Generation {
		return false
	}
	if st.LastTurn != a.Input.Turn {
		return false
	}
	return r.waitLeft() == 0
}

// checkCursor refuses a cursor that names a row of the conversation which is no reply to this turn. One that names no row at
// all is of a reply that a failover lost: whoever followed it starts over.
func (a *arrival) checkCursor(ctx context.Context, st Standing) error {
	if a.Cursor == nil || st.Cursor != nil {
		return nil
	}
	_, err := a.store.FindTurn(ctx, a.key, a.Cursor.Reply.Row())
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return &Error{Code: CodeInvalidCursor, Field: "cursor.reply_id", Problem: "is no reply to this turn; send the turn without a cursor"}
}

// answer makes the submission that follows a reply.
func (a *arrival) answer(ctx context.Context, st Standing, r Reply, result DeliveryResult) Submission {
	sub := Submission{Key: a.key, Reply: r, Result: result, repeats: result != ResultNew}
	if sub.repeats {
		LinkReply(ctx, r)
	}
	if st.Turn != nil {
		sub.Turn = *st.Turn
		sub.Turn.Content = nil
	}
	if a.Cursor == nil {
		return sub
	}
	switch {
	case a.Cursor.Reply == r.ID:
		sub.Offset = a.Cursor.Offset
	case st.Cursor != nil:
		sub.Restarted = &Restarted{Reply: r.ID, Previous: *st.Cursor}
	default:
		sub.Restarted = &Restarted{Reply: r.ID, Previous: Reply{ID: a.Cursor.Reply}} // lost: nothing is known of it
	}
	return sub
}

// claim tries to start the turn's reply.
func (a *arrival) claim(ctx context.Context, st Standing) (Submission, bool, error) {
	switch {
	case st.Running != nil && (a.OnBusy == OnBusyInterrupt || a.OnBusy == OnBusySupersede):
		return Submission{}, false, a.interrupt(ctx, st)
	case a.joinsLine(st):
		return a.enqueue(ctx, st)
	case st.Running != nil:
		return Submission{}, false, busy(*st.Running)
	case a.standsBehind(st):
		return Submission{}, false, busyLine(st)
	}
	if waited, err := a.admit(); waited || err != nil {
		return Submission{}, false, err // who has waited looks again
	}
	if err := a.ready(ctx, st); err != nil {
		return Submission{}, false, err
	}
	if st.Newest != nil {
		LinkReply(ctx, *st.Newest)
	}
	begun := time.Now()
	results, err := a.sendClaim(ctx)
	a.metrics.claimTook(ctx, begun)
	if a.unsure = a.unsure || errors.Is(err, ErrUnknownOutcome); a.unsure && err != nil {
		if !pause(ctx, unsurePause) {
			return Submission{}, false, err
		}
		return Submission{}, false, nil // the same ids are looked for, and sent again if they are not there
	}
	if err != nil {
		return Submission{}, false, err
	}
	a.unsure = false // an answer now is one about the same ids, whichever of the two statements came first
	if met := results[0].Met; met != nil {
		return Submission{}, false, a.met(ctx, *met)
	}
	if !results[0].Won {
		return Submission{}, false, nil
	}
	return a.won(ctx, st, a.pending.claim.row(results[0].CreateTime)), true, nil
}

// ready has the claim for a standing prepared, and sees that this worker may send it.
func (a *arrival) ready(ctx context.Context, st Standing) error {
	if a.pending == nil || a.pending.claim.ExpectVersion != st.Version {
		pending, err := a.prepare(ctx, st)
		if err != nil {
			return err
		}
		a.pending = &pending
	}
	if !a.lease.holds(a.pending.claim.Reply.Owner) {
		// Nothing could be sent on the claim. The next renewal puts that right, or gives this worker a new id.
		a.pending = nil
		return Unavailable(errLeaseOut)
	}
	return nil
}

// recover finds out what became of a claim whose sender has given up, and runs it if it stands: under this worker's live
// lease nobody else would. Drain waits for it.
func (a *arrival) recover() {
	for wait := unsurePause; ; wait = min(2*wait, 5*time.Second) {
		ctx, cancel := context.WithTimeout(a.last, submitTime)
		_, claimErr := a.store.Claim(ctx, []Claim{a.pending.claim}) // waits for the lost one, and makes it definite
		reply, err := a.store.ReadReply(ctx, a.key, a.reply)
		cancel()
		switch {
		case err == nil && reply.Status == StatusInFlight && reply.Owner == a.pending.claim.Reply.Owner:
			reply.Content = nil
			a.start(*a.pending, reply)
			return
		case err == nil, claimErr == nil && errors.Is(err, ErrNotFound):
			a.leavePlace(a.caller)
			return
		}
		if !pause(a.last, wait) {
			a.leavePlace(a.caller)
			return
		}
	}
}

// won starts the run of a claim that was committed.
func (a *arrival) won(ctx context.Context, st Standing, r Reply) Submission {
	result := ResultNew
	if a.pending.claim.NewTurn == nil {
		result = ResultRetried
	} else {
		a.pending.arrived = a.arrived
	}
	a.admitted = false // the run gives the place back
	a.start(*a.pending, r)
	if r.LeaseLeft == 0 {
		r.LeaseLeft = a.lease.left()
	}
	if st.Turn == nil {
		c := a.pending.claim
		st.Turn = &UserTurn{Conversation: c.Conversation, ID: c.Turn, Parent: c.NewTurn.Parent, Seq: c.NextSeq,
			Options: c.NewTurn.Options, Generation: 1, CreateTime: r.CreateTime}
	}
	return a.answer(ctx, st, r, result)
}

// row is the reply that the claim inserts.
func (c Claim) row(created time.Time) Reply {
	return Reply{
		Conversation: c.Conversation, ID: c.Reply.ID, Turn: c.Turn, Status: StatusInFlight, Attempt: c.Reply.Attempt,
		Generation: c.Reply.Generation, Options: c.Reply.Options, DefaultsVersion: c.Reply.DefaultsVersion, Epoch: 1, Owner: c.Reply.Owner, Endpoint: c.Reply.Route.Endpoint,
		Provider: c.Reply.Route.Provider, Model: c.Reply.Route.Model, Calls: c.Reply.Calls, Waited: c.Reply.Waited,
		RequestHash: c.Reply.RequestHash, WindowStart: c.Reply.WindowStart, DisconnectGrace: c.Reply.DisconnectGrace,
		BuilderVersion: c.Reply.BuilderVersion, ProviderModel: c.Reply.Route.ProviderModel,
		OnAmbiguous: c.Reply.OnAmbiguous, OnPartial: c.Reply.OnPartial, CreateTime: created,
	}
}

func busy(r Reply) error {
	wait := max(min(r.LeaseLeft, 5*time.Second), time.Second)
	return &Error{Code: CodeBusy, RetryAfter: wait,
		Problem: "another reply of the conversation is running; wait for it, or cancel it",
		Meta: map[string]string{
			"turn_id": r.Turn.String(), "reply_id": r.ID.String(),
			"age_ms":              fmt.Sprint(r.Age.Milliseconds()),
			"lease_expires_in_ms": fmt.Sprint(r.LeaseLeft.Milliseconds()),
		}}
}
