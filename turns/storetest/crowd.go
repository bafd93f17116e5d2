package storetest

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

const (
	crowdSize  = 8
	crowdSteps = 100
	// crowdRounds bounds how often that is done until each kind of thing has happened.
	crowdRounds = 10
)

// RunConcurrent lets goroutines, each a worker, do random things to few conversations at once, while some of them lose
// their lease. Then it ends what is left and checks in the rows what must hold, and that the wins which were answered are
// the rows that are stored.
func RunConcurrent(t *testing.T, open Opener) {
	w := newWorld(t, open)
	c := &crowd{world: w}
	for range 3 {
		c.convs = append(c.convs, newConversation())
	}
	members := make([]*member, crowdSize)
	for i := range members {
		members[i] = &member{crowd: c, me: w.register(), rand: rand.New(rand.NewPCG(uint64(i), 1))}
	}
	for round := 0; round == 0 || round < crowdRounds && !c.sawAll(); round++ {
		atOnce(crowdSize, func(i int) {
			for range crowdSteps {
				members[i].step()
			}
		})
	}
	require.Empty(t, c.failure.Load())
	c.midway()
	c.resolveAll()
	c.settled()
}

// crowd counts what its members were told.
type crowd struct {
	*world
	convs                                  []conversation
	claimed, permitted, appended           atomic.Int64
	ended, finished                        atomic.Int64 // by anybody, and by their owner
	revived, salvaged, settledLate, chosen atomic.Int64
	taken, restored, replaced, resolved    atomic.Int64
	failure                                atomic.Value
}

// member is one worker. It remembers what it claimed, and goes on writing it after it lost it.
type member struct {
	*crowd
	me     turns.WorkerID
	rand   *rand.Rand
	claims []*held
}

// held is a claim as its worker sees it.
type held struct {
	claim  turns.Claim
	fence  turns.Fence
	length uint32
	calls  int
}

// fail keeps the first error; a test must not be ended from a goroutine of its own making.
func (c *crowd) fail(err error) bool {
	if err != nil {
		c.failure.CompareAndSwap(nil, err.Error())
	}
	return err != nil
}

func (m *member) step() {
	switch n := m.rand.IntN(37); {
	case n < 6 || len(m.claims) == 0:
		m.claimSome()
	case n < 9:
		m.write(m.pick())
	case n < 11:
		m.ask(m.pick())
	case n < 17:
		m.finish(m.pick())
	case n < 19:
		m.sweepSome()
	case n < 24:
		m.comeBack(m.pick())
	case n < 27:
		m.chooseSome()
	case n < 28:
		m.stopSome()
	case n < 30:
		m.restoreSome()
	case n < 32:
		m.replaceOne(m.pick())
	case n < 35:
		m.lookUpSome()
	default:
		m.die()
	}
}

// pick prefers the newest claim, as the others are mostly over.
func (m *member) pick() *held {
	if m.rand.IntN(4) > 0 {
		return m.claims[len(m.claims)-1]
	}
	return m.claims[m.rand.IntN(len(m.claims))]
}

func (m *member) claimSome() {
	conv := m.convs[m.rand.IntN(len(m.convs))]
	st, err := m.Store.Lookup(m.ctx, turns.LookupQuery{Key: conv.key})
	if m.fail(err) {
		return
	}
	if st.LastTurn != (turns.TurnID{}) && m.rand.IntN(2) == 0 {
		if st, err = m.Store.Lookup(m.ctx, turns.LookupQuery{Key: conv.key, Turn: st.LastTurn}); m.fail(err) {
			return
		}
	}
	claim := m.first(conv)
	claim.ExpectVersion, claim.NextSeq, claim.Reply.Owner = st.Version, max(1, st.NextSeq), m.me
	if claim.NewTurn.Parent = st.Leaf; st.Turn != nil {
		claim.NewTurn, claim.Turn, claim.Reply.Attempt = nil, st.Turn.ID, st.Newest.Attempt+1
		claim.Reply.Generation = st.Turn.Generation
		if st.Live != nil {
			claim.Supersede = st.Live.ID
			claim.Reply.Generation++
		}
	}
	for range 1 + m.rand.IntN(2) { // some are sent twice
		results, err := m.Store.Claim(m.ctx, []turns.Claim{claim})
		if m.fail(err) {
			return
		}
		if results[0].Won {
			m.claimed.Add(1)
			m.claims = append(m.claims, &held{claim: claim, fence: fenceOf(claim), calls: 1})
		}
	}
}

func (m *member) write(h *held) {
	p := more("text")
	p.Starts = h.length == 0
	cp := turns.Checkpoint{Fence: h.fence, From: h.length, To: h.length + p.Len(), Pieces: []turns.Piece{p}}
	results, err := m.Store.Checkpoint(m.ctx, []turns.Checkpoint{cp})
	if m.fail(err) || !results[0].Held {
		return
	}
	h.length = cp.To
	m.appended.Add(1)
}

func (m *member) ask(h *held) {
	p := permitFor(h.claim, h.calls+1)
	p.Fence = h.fence
	results, err := m.Store.PermitCalls(m.ctx, []turns.CallPermit{p})
	if m.fail(err) || !results[0].Granted {
		return
	}
	h.calls++
	m.permitted.Add(1)
}

func (m *member) finish(h *held) {
	e := completing(h.claim, h.length, whole("done"))
	switch m.rand.IntN(4) {
	case 0, 1:
		e = abandoning(h.claim, h.length, turns.ReasonShutdown)
	case 2:
		e = holding(h.claim, h.length, whole("held"))
		e.LookupIn = time.Microsecond
	}
	e.Fence = h.fence
	results, err := m.Store.End(m.ctx, []turns.Ending{e})
	if !m.fail(err) && results[0].Won {
		m.ended.Add(1)
		m.finished.Add(1)
	}
}

// sweepSome buries and sweeps as every worker does, beside all others who do the same.
func (m *member) sweepSome() {
	if _, err := m.Store.BuryWorkers(m.ctx); m.fail(err) {
		return
	}
	stale, err := m.Store.StaleReplies(m.ctx, turns.StaleQuery{Limit: 10})
	if m.fail(err) {
		return
	}
	for _, s := range stale {
		if m.rand.IntN(2) == 0 {
			m.takeOne(s)
		} else {
			m.sweepOne(s)
		}
	}
}

func (c *crowd) sweepOne(s turns.StaleReply) {
	r, err := c.Store.ReadReply(c.ctx, s.Key, s.Reply.ID)
	if c.fail(err) {
		return
	}
	sw := turns.Sweeping{
		Fence: turns.Fence{Key: s.Key, Reply: s.Reply.ID, Epoch: s.Reply.Epoch, Owner: s.Reply.Owner}, Verb: turns.VerbSweep,
		Status: turns.StatusAbandoned, Reason: turns.ReasonLeaseExpired, Content: r.Content, Length: r.Length,
	}
	for _, call := range s.OpenCalls {
		sw.Calls = append(sw.Calls, *closing(s.Key, call.ID, turns.ClassAmbiguous))
	}
	won, err := c.Store.Sweep(c.ctx, sw)
	if !c.fail(err) && won {
		c.ended.Add(1)
	}
}

// takeOne takes a stale reply over, and goes on with it.
func (m *member) takeOne(s turns.StaleReply) {
	claim := turns.Claim{Key: s.Key, Turn: s.Reply.Turn, Reply: turns.NewReply{ID: s.Reply.ID}, Call: turns.NewCall{ID: newCallID()}}
	v := turns.Takeover{
		Fence: turns.Fence{Key: s.Key, Reply: s.Reply.ID, Epoch: s.Reply.Epoch, Owner: s.Reply.Owner}, StoredLength: s.Reply.Length,
		Owner: m.me, Call: turns.NewCall{ID: claim.Call.ID, Number: s.Reply.Calls + 1, Key: "key"}, MaxCalls: 10,
	}
	result, err := m.Store.TakeOver(m.ctx, v)
	if !m.fail(err) && result.Won {
		m.taken.Add(1)
		m.claims = append(m.claims, &held{claim: claim, fence: overtaken(v), length: v.StoredLength, calls: result.Calls})
	}
}

// restoreSome puts a reply beside those of a conversation's last turn, as one that a failover lost.
func (m *member) restoreSome() {
	conv := m.convs[m.rand.IntN(len(m.convs))]
	st, err := m.Store.Lookup(m.ctx, turns.LookupQuery{Key: conv.key})
	if m.fail(err) {
		return
	}
	if st, err = m.Store.Lookup(m.ctx, turns.LookupQuery{Key: conv.key, Turn: st.LastTurn}); m.fail(err) || st.Turn == nil {
		return
	}
	lost := turns.LostReply{
		Key: conv.key, Tenant: conv.tenant, Conversation: conv.id, ExpectVersion: st.Version, NextSeq: st.NextSeq, Turn: st.Turn.ID,
		Reply:  turns.NewReply{ID: newReplyID(), Attempt: st.Newest.Attempt + 1, Generation: st.Turn.Generation, Owner: m.me},
		Ending: turns.Ending{Status: turns.StatusAbandoned, Reason: turns.ReasonLeaseExpired},
	}
	for range 1 + m.rand.IntN(2) { // some are sent twice
		if won, err := m.Store.Restore(m.ctx, lost); !m.fail(err) && won {
			m.restored.Add(1)
		}
	}
}

// comeBack brings a reply back that was ended from outside, or leaves what is known of it. Where it wasn't, it is refused.
func (m *member) comeBack(h *held) {
	r, e := reviving(h.claim, m.me), completing(h.claim, h.length, whole("text"))
	text := strings.Repeat("text", int(h.length/4)+1)
	r.Fence, r.Pieces = h.fence, []turns.Piece{opening(text)}
	e.Fence, e.Content = h.fence, []turns.Piece{whole(text)}
	r.Length, e.Length = lengthOf(r.Pieces), lengthOf(e.Content)
	switch m.rand.IntN(3) {
	case 0:
		if won, err := m.Store.Revive(m.ctx, r); !m.fail(err) && won {
			m.revived.Add(1)
			h.fence, h.length = taken(r), r.Length
		}
	case 1:
		if won, err := m.Store.Salvage(m.ctx, e); !m.fail(err) && won {
			m.salvaged.Add(1)
		}
	case 2:
		if won, err := m.Store.Settle(m.ctx, e); !m.fail(err) && won {
			m.settledLate.Add(1)
		}
	}
}

// chooseSome makes a superseded reply of a conversation's last turn live again.
func (m *member) chooseSome() {
	conv := m.convs[m.rand.IntN(len(m.convs))]
	st, err := m.Store.Lookup(m.ctx, turns.LookupQuery{Key: conv.key})
	if m.fail(err) {
		return
	}
	if st, err = m.Store.Lookup(m.ctx, turns.LookupQuery{Key: conv.key, Turn: st.LastTurn}); m.fail(err) {
		return
	}
	replies, err := m.Store.RepliesTo(m.ctx, conv.key, st.LastTurn, 100)
	if m.fail(err) || len(replies) == 0 {
		return
	}
	s := turns.Selection{Key: conv.key, ExpectVersion: st.Version, Turn: replies[0].Turn}
	if st.Live != nil {
		s.Supersede = st.Live.ID
	}
	for _, r := range replies {
		if r.Reason == turns.ReasonSuperseded {
			s.Select = r.ID
		}
	}
	if won, err := m.Store.Select(m.ctx, s); !m.fail(err) && won {
		m.chosen.Add(1)
	}
}

// stopSome asks for a stop of a turn that this worker once claimed a reply of.
func (m *member) stopSome() {
	claim := m.pick().claim
	_, err := m.Store.RequestStop(m.ctx, claim.Key, claim.Turn, 0, turns.TurnID{})
	m.fail(err)
}

// die lets the lease run out. The old claims are kept, and written on, under the old name; new ones get a new one.
func (m *member) die() {
	if m.fail(m.Exec(m.ctx, m.sql("UPDATE workers SET lease_until = start_time WHERE worker_id = %s", m.me.UUID))) {
		return
	}
	id := newReplyID()
	m.me = turns.WorkerID(id)
	m.fail(m.Store.RegisterWorker(m.ctx, turns.Worker{ID: m.me}, hour))
}

// midway checks what holds at any moment.
func (c *crowd) midway() {
	for promise, query := range map[string]string{
		"one live reply a turn": `SELECT count(*) FROM (SELECT 1 FROM turns WHERE role = 'assistant' AND status <> 'abandoned'
			GROUP BY conversation_key, responds_to HAVING count(*) > 1) AS twice`,
		"one running reply a conversation": `SELECT count(*) FROM (SELECT 1 FROM turns WHERE status = 'in_flight'
			GROUP BY conversation_key HAVING count(*) > 1) AS twice`,
		"chunks only of replies in flight": `SELECT count(*) FROM reply_chunks k WHERE NOT EXISTS (SELECT 1 FROM turns r
			WHERE r.conversation_key = k.conversation_key AND r.id = k.reply_id AND r.status = 'in_flight')`,
		"chunks join up to the log's length": `SELECT count(*) FROM turns r WHERE r.status = 'in_flight' AND r.log_len <> (
			SELECT COALESCE(sum(end_offset - start_offset), 0) FROM reply_chunks k
			WHERE k.conversation_key = r.conversation_key AND k.reply_id = r.id)`,
		"each chunk begins where another ends": `SELECT count(*) FROM reply_chunks k WHERE k.start_offset > 0 AND NOT EXISTS (
			SELECT 1 FROM reply_chunks b WHERE b.conversation_key = k.conversation_key AND b.reply_id = k.reply_id
				AND b.end_offset = k.start_offset)`,
		"an ended reply has no open call": `SELECT count(*) FROM provider_calls p JOIN turns r
			ON r.conversation_key = p.conversation_key AND r.id = p.reply_id WHERE p.end_time IS NULL AND r.status NOT IN ('in_flight', 'held')`,
		"only what is held is looked up": `SELECT count(*) FROM turns WHERE next_lookup_at IS NOT NULL AND status <> 'held'`,
		"what was replaced names a reply of its turn": `SELECT count(*) FROM turns r WHERE r.replaced_by IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM turns b WHERE b.conversation_key = r.conversation_key AND b.id = r.replaced_by AND b.responds_to = r.responds_to)`,
		"a user turn has a reply": `SELECT count(*) FROM turns u WHERE u.role = 'user' AND NOT EXISTS (SELECT 1 FROM turns r
			WHERE r.conversation_key = u.conversation_key AND r.responds_to = u.id)`,
		"seq is dense": `SELECT count(*) FROM (SELECT 1 FROM turns GROUP BY conversation_key
			HAVING max(seq) <> count(*) OR min(seq) <> 1) AS gaps`,
		"the version counts the claims and more": `SELECT count(*) FROM conversations c WHERE c.version < (SELECT count(*) FROM turns r
			WHERE r.conversation_key = c.conversation_key AND r.role = 'assistant')`,
		"the leaf is a reply of its conversation": `SELECT count(*) FROM conversations c WHERE NOT EXISTS (SELECT 1 FROM turns r
			WHERE r.conversation_key = c.conversation_key AND r.id = c.leaf_id AND r.role = 'assistant')`,
		"a user turn's generation is its newest reply's": `SELECT count(*) FROM turns u WHERE u.role = 'user' AND u.generation <> (
			SELECT max(generation) FROM turns r WHERE r.conversation_key = u.conversation_key AND r.responds_to = u.id)`,
		"what completed is settled":    `SELECT count(*) FROM turns WHERE (status = 'complete' OR reason = 'superseded') AND settled_at IS NULL`,
		"nothing in flight is settled": `SELECT count(*) FROM turns WHERE status = 'in_flight' AND settled_at IS NOT NULL`,
		"the next place is after the last": `SELECT count(*) FROM conversations c WHERE c.next_seq <> 1 + (
			SELECT max(seq) FROM turns r WHERE r.conversation_key = c.conversation_key)`,
	} {
		require.Zero(c.t, c.count(query), promise)
	}
	require.EqualValues(c.t, c.claimed.Load()+c.restored.Load(), c.count("SELECT count(*) FROM turns WHERE role = 'assistant'"))
	require.EqualValues(c.t, c.claimed.Load()+c.permitted.Load()+c.taken.Load(), c.count("SELECT count(*) FROM provider_calls"))
	require.EqualValues(c.t, c.ended.Load()+c.restored.Load()-c.revived.Load(), c.count("SELECT count(*) FROM turns WHERE role = 'assistant' AND status <> 'in_flight'"))
	require.EqualValues(c.t, c.revived.Load()+c.taken.Load(), c.count("SELECT CAST(COALESCE(sum(epoch - 1), 0) AS bigint) FROM turns WHERE role = 'assistant'"))
	require.EqualValues(c.t, c.finished.Load()+c.salvaged.Load()+c.settledLate.Load()+c.restored.Load(), c.count("SELECT count(*) FROM turns WHERE settled_at IS NOT NULL"))
	require.True(c.t, c.sawAll(), "each kind of thing happened")
}

// sawAll reports whether each kind of thing was won by somebody. Which are is luck: a slow engine takes more rounds.
func (c *crowd) sawAll() bool {
	back := c.revived.Load() + c.salvaged.Load() + c.settledLate.Load() + c.chosen.Load()
	for _, n := range []int64{c.claimed.Load(), c.appended.Load(), c.ended.Load(), c.taken.Load(), c.restored.Load(), c.replaced.Load(),
		c.resolved.Load(), back} {
		if n == 0 {
			return false
		}
	}
	return true
}

// resolveAll lets every worker die and sweeps what they leave.
func (c *crowd) resolveAll() {
	c.exec("UPDATE workers SET lease_until = start_time")
	_, err := c.Store.BuryWorkers(c.ctx)
	require.NoError(c.t, err)
	for _, s := range c.stale(turns.StaleQuery{}) {
		c.sweepOne(s)
	}
	for _, h := range c.heldOf(turns.HeldQuery{Tenant: "tenant", Limit: 100}) {
		c.resolveHeld(h, turns.VerbRelease)
	}
	require.Empty(c.t, c.failure.Load())
}

// settled checks what holds once everybody is dead and swept.
func (c *crowd) settled() {
	require.Zero(c.t, c.count("SELECT count(*) FROM turns WHERE status = 'in_flight'"), "no claim outlives its worker's sweep")
	require.Zero(c.t, c.count("SELECT count(*) FROM reply_chunks"))
	require.Zero(c.t, c.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
	c.midway()
	require.NoError(c.t, c.Store.ForgetWorkers(c.ctx, 0))
	require.Zero(c.t, c.count("SELECT count(*) FROM workers"))
}
