package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// worker registers a worker whose lease outlives the test.
func (d database) worker(t testing.TB) turns.WorkerID {
	t.Helper()
	id := turns.WorkerID{UUID: uuid.New()}
	require.NoError(t, d.store.RegisterWorker(t.Context(), turns.Worker{ID: id, Name: "w"}, time.Hour))
	return id
}

// newClaim is the claim of a first turn in a new conversation.
func newClaim(owner turns.WorkerID) turns.Claim {
	conversation, turn := turns.ConversationID{UUID: uuid.New()}, turns.TurnID{UUID: uuid.New()}
	return turns.Claim{
		Key: turns.KeyOf("tenant", conversation), Tenant: "tenant", Conversation: conversation, NextSeq: 1, Turn: turn,
		NewTurn: &turns.NewTurn{InputHash: []byte("h"), Content: []turns.Block{turns.Text{Text: "hello"}}},
		Reply: turns.NewReply{ID: turns.ReplyID{UUID: uuid.New()}, Attempt: 1, Generation: 1, Owner: owner, Calls: 1,
			RequestHash: []byte("r"), WindowStart: turn.Row(), Deadline: time.Hour},
		Call: turns.NewCall{ID: turns.CallID{UUID: uuid.New()}, Number: 1, First: true, Key: "k", RequestBytes: 100},
	}
}

// after is the claim of a further turn below a claim that was won.
func after(won turns.Claim) turns.Claim {
	c := newClaim(won.Reply.Owner)
	c.Key, c.Conversation = won.Key, won.Conversation
	c.ExpectVersion, c.NextSeq = won.ExpectVersion+1, won.NextSeq+2
	c.NewTurn.Parent = won.Reply.ID.Row()
	return c
}

// win sends a claim that must be won.
func (d database) win(t testing.TB, c turns.Claim) turns.Claim {
	t.Helper()
	results, err := d.store.Claim(t.Context(), []turns.Claim{c})
	require.NoError(t, err)
	require.True(t, results[0].Won)
	return c
}

func fenceOf(c turns.Claim) turns.Fence {
	return turns.Fence{Key: c.Key, Reply: c.Reply.ID, Epoch: 1, Owner: c.Reply.Owner}
}

// tail is a checkpoint of the text "ab" from the log's start on.
func tail(c turns.Claim) turns.Checkpoint {
	return turns.Checkpoint{Fence: fenceOf(c), To: 3, Pieces: []turns.Piece{{Kind: turns.KindText, Starts: true, Text: "ab"}}}
}

func completing(c turns.Claim) turns.Ending {
	return turns.Ending{
		Fence: fenceOf(c), Verb: turns.VerbComplete, Status: turns.StatusComplete, Length: 4, StopReason: turns.StopEndTurn,
		Content: []turns.Piece{{Kind: turns.KindText, Starts: true, Text: "ab", Ends: true}},
		Call:    &turns.CallOutcome{Key: c.Key, ID: c.Call.ID, Class: turns.ClassOK, Phase: turns.PhaseDone},
	}
}

func sweeping(c turns.Claim) turns.Sweeping {
	return turns.Sweeping{Fence: fenceOf(c), Verb: turns.VerbSweep, Status: turns.StatusAbandoned, Reason: turns.ReasonLeaseExpired}
}

func permitFor(c turns.Claim) turns.CallPermit {
	return turns.CallPermit{Fence: fenceOf(c), Turn: c.Turn, MaxCalls: 3,
		Call: turns.NewCall{ID: turns.CallID{UUID: uuid.New()}, Number: 2, Key: "k", RequestBytes: 100}}
}

// reviving brings a claim's reply back under its old owner with the text "ab".
func reviving(c turns.Claim) turns.Revival {
	return turns.Revival{Fence: fenceOf(c), Owner: c.Reply.Owner, Pieces: tail(c).Pieces, Length: 3, Deadline: time.Hour, Call: c.Call.ID}
}

// adopting completes a held reply of which nothing is stored.
func adopting(c turns.Claim) turns.Resolution {
	e := completing(c)
	return turns.Resolution{Fence: e.Fence, Verb: turns.VerbAdopt, Status: e.Status, Content: e.Content, Length: e.Length,
		StopReason: e.StopReason, Calls: []turns.CallOutcome{*e.Call}}
}

// replacing puts another reply in the place of a claim's, in a conversation at the given version.
func replacing(c turns.Claim, version int64) turns.Replacement {
	e, next := completing(c), again(c)
	e.Verb, e.Status, e.Reason, e.StopReason = turns.VerbReplace, turns.StatusAbandoned, turns.ReasonAmbiguous, ""
	next.ExpectVersion = version
	return turns.Replacement{Ending: e, Claim: next}
}

// setHeld makes a claim's reply held, whatever it was, with an empty log.
func (d database) setHeld(t testing.TB, c turns.Claim) error {
	_, err := d.rows.Exec(t.Context(), `UPDATE turns SET status = 'held', reason = '', epoch = 1, content = '[]', log_len = 0,
		end_time = NULL, cancel_requested = false WHERE conversation_key = $1 AND id = $2`,
		[16]byte(c.Key), [16]byte(c.Reply.ID.UUID))
	return err
}

// orMissing is the error of a read, unless it is that there is nothing.
func orMissing[T any](_ T, err error) error {
	if turns.CodeOf(err) == turns.CodeNotFound {
		return nil
	}
	return err
}

// regenerating is the claim of a further generation of a claim that was completed, in its place.
func regenerating(c turns.Claim) turns.Claim {
	next := newClaim(c.Reply.Owner)
	next.Key, next.Conversation, next.Turn, next.NewTurn = c.Key, c.Conversation, c.Turn, nil
	next.ExpectVersion, next.NextSeq, next.Supersede = c.ExpectVersion+1, c.NextSeq+2, c.Reply.ID
	next.Reply.Attempt, next.Reply.Generation = c.Reply.Attempt+1, c.Reply.Generation+1
	return next
}

// again is the claim of a further attempt of a claim that was abandoned.
func again(c turns.Claim) turns.Claim {
	next := regenerating(c)
	next.Supersede, next.Reply.Generation = turns.ReplyID{}, c.Reply.Generation
	return next
}

// complete ends a claim's reply as complete, and orphan as swept because its owner was buried.
func (d database) complete(t testing.TB, c turns.Claim) turns.Claim {
	t.Helper()
	results, err := d.store.End(t.Context(), []turns.Ending{completing(c)})
	require.NoError(t, err)
	require.True(t, results[0].Won)
	return c
}

func (d database) orphan(t testing.TB, c turns.Claim) turns.Claim {
	t.Helper()
	require.NoError(t, d.store.RetireWorker(t.Context(), c.Reply.Owner))
	won, err := d.store.Sweep(t.Context(), sweeping(c))
	require.NoError(t, err)
	require.True(t, won)
	return c
}
