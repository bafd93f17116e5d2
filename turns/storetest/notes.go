package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func notes() []promise {
	return []promise{
		{"a call is kept as it was built, and who was asked", aCallIsKeptAsItWasBuilt},
		{"a call that is not sent yet is open and unsent until a note says so", aCallIsUnsentUntilItIsNoted},
		{"a note keeps the session, and one without leaves it", aNoteKeepsTheSession},
		{"the same note again is noted and changes nothing", theSameNoteAgain},
		{"what a note knows of how far a call came stays where what closes it knows less", aNoteOfHowFarStays},
		{"notes of a batch are answered each", notesAreAnsweredEach},
		{"a body is read by the one read that asks for it", aBodyIsReadWhereItIsAskedFor},
		{"whatever closes a call drops its body", whateverClosesACallDropsItsBody},
		{"an open call has the response id that a checkpoint has stored since", anOpenCallHasItsResponse},
		{"a call that is closed or missing is not found", aClosedCallIsNotFound},
		{"a note under another epoch changes nothing", func(_ *testing.T, w *world) {
			w.notNoted(func(_ turns.Claim, n *turns.CallNote) { n.Fence.Epoch++ })
		}},
		{"a note by another owner changes nothing", func(_ *testing.T, w *world) {
			w.notNoted(func(_ turns.Claim, n *turns.CallNote) { n.Fence.Owner = w.register() })
		}},
		{"a note of another reply's call changes nothing", func(_ *testing.T, w *world) {
			w.notNoted(func(_ turns.Claim, n *turns.CallNote) {
				_, other := w.fresh()
				n.Call = other.Call.ID
			})
		}},
		{"a note under another tenant's key changes nothing", func(_ *testing.T, w *world) {
			w.notNoted(func(c turns.Claim, n *turns.CallNote) {
				n.Fence.Key = foreign(conversationOf(c.Tenant, c.Conversation.UUID)).key
			})
		}},
		{"a note changes nothing once a stop was asked for", func(_ *testing.T, w *world) {
			w.notNoted(func(c turns.Claim, _ *turns.CallNote) { w.askToStop(c.Reply.ID) })
		}},
		{"a note of a closed call changes nothing", func(t *testing.T, w *world) {
			w.notNoted(func(c turns.Claim, _ *turns.CallNote) {
				require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(c.Key, c.Call.ID, turns.ClassNotSent)}))
			})
		}},
		{"a note of a reply that is over changes nothing", func(_ *testing.T, w *world) {
			w.notNoted(func(c turns.Claim, _ *turns.CallNote) { w.finish(abandoning(c, 0, turns.ReasonShutdown)) })
		}},
		{"a note of a held reply changes nothing", func(_ *testing.T, w *world) {
			w.notNoted(func(c turns.Claim, _ *turns.CallNote) { w.finish(holding(c, 0)) })
		}},
	}
}

// note sends one note.
func (w *world) note(n turns.CallNote) bool {
	w.t.Helper()
	results, err := w.Store.NoteCalls(w.ctx, []turns.CallNote{n})
	require.NoError(w.t, err)
	require.Len(w.t, results, 1)
	return results[0].Noted
}

func noteFor(c turns.Claim) turns.CallNote {
	return turns.CallNote{Fence: fenceOf(c), Call: c.Call.ID, Session: "conv_1", Submitted: true}
}

func (w *world) notNoted(spoil func(turns.Claim, *turns.CallNote)) {
	w.t.Helper()
	claim := w.first(newConversation())
	claim.Call.Unsent = true
	n := noteFor(w.win(claim))
	spoil(claim, &n)
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.note(n))
	})
}

func (w *world) readCall(c turns.Claim, id turns.CallID) turns.OpenCall {
	w.t.Helper()
	call, err := w.Store.ReadCall(w.ctx, c.Key, id)
	require.NoError(w.t, err)
	return call
}

// spareRoute is another endpoint of the same model.
var spareRoute = turns.Route{Model: "demo", Endpoint: "spare", Provider: "openai", ProviderModel: "demo-2", Credential: "other"}

func aCallIsKeptAsItWasBuilt(t *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.Call.Route, claim.Call.RequestHash, claim.Call.BuilderVersion = spareRoute, []byte("its own"), 7
	w.win(claim)
	equal(t, openOf(claim.Call), w.readCall(claim, claim.Call.ID), ageless)
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM provider_calls WHERE endpoint = 'spare' AND provider = 'openai'
		AND provider_model = 'demo-2' AND credential = 'other' AND builder_version = 7 AND submitted_at IS NOT NULL`))
	p := permitFor(claim, 2)
	require.True(t, w.permit(p).Granted)
	equal(t, openOf(p.Call), w.readCall(claim, p.Call.ID), ageless)
	first, second := w.readCall(claim, claim.Call.ID).Age, w.readCall(claim, p.Call.ID).Age
	require.Positive(t, second)
	require.Less(t, second, w.readCall(claim, claim.Call.ID).Age)
	require.Positive(t, first)
}

func aCallIsUnsentUntilItIsNoted(t *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.Call.Unsent = true
	w.win(claim)
	require.False(t, w.readCall(claim, claim.Call.ID).Submitted)
	n := noteFor(claim)
	n.Submitted = false
	require.True(t, w.note(n))
	require.False(t, w.readCall(claim, claim.Call.ID).Submitted)
	require.True(t, w.note(noteFor(claim)))
	require.True(t, w.readCall(claim, claim.Call.ID).Submitted)
}

func aNoteKeepsTheSession(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.True(t, w.note(noteFor(claim)))
	require.True(t, w.note(turns.CallNote{Fence: fenceOf(claim), Call: claim.Call.ID}))
	require.Equal(t, "conv_1", w.readCall(claim, claim.Call.ID).Session)
	w.bury(w.worker)
	require.Equal(t, "conv_1", w.stale(turns.StaleQuery{})[0].OpenCalls[0].Session)
}

func theSameNoteAgain(t *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.Call.Unsent = true
	w.win(claim)
	require.True(t, w.note(noteFor(claim)))
	w.unchanged(func() { require.True(t, w.note(noteFor(claim))) })
}

func aNoteOfHowFarStays(t *testing.T, w *world) {
	known := func(phase turns.CallPhase, status int, request string) {
		require.EqualValues(t, 1, w.count(fmt.Sprintf(`SELECT count(*) FROM provider_calls WHERE phase = '%s' AND http_status = %d
			AND provider_request_id = '%s'`, phase, status, request)), "%s %d %s", phase, status, request)
	}
	noted := func() turns.Claim {
		_, claim := w.fresh()
		n := turns.CallNote{Fence: fenceOf(claim), Call: claim.Call.ID, Phase: turns.PhaseBody, HTTPStatus: 203, RequestID: claim.Call.ID.String()}
		require.True(t, w.note(n))
		require.True(t, w.note(turns.CallNote{Fence: fenceOf(claim), Call: claim.Call.ID}))
		known(turns.PhaseBody, 203, claim.Call.ID.String())
		return claim
	}
	closes := func(c turns.Claim, edit func(*turns.CallOutcome)) {
		o := closing(c.Key, c.Call.ID, turns.ClassAmbiguous)
		o.Phase, o.HTTPStatus, o.RequestID = turns.PhaseWritten, 0, ""
		edit(o)
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*o}))
	}

	less := noted()
	closes(less, func(*turns.CallOutcome) {})
	known(turns.PhaseBody, 203, less.Call.ID.String())
	more := noted()
	closes(more, func(o *turns.CallOutcome) { o.Phase, o.HTTPStatus, o.RequestID = turns.PhaseDone, 200, "another" })
	known(turns.PhaseDone, 200, "another")
	guessed := noted()
	unknown := abandoning(guessed, 0, turns.ReasonShutdown)
	unknown.Call = nil
	w.finish(unknown)
	known(turns.PhaseBody, 203, guessed.Call.ID.String())
}

func notesAreAnsweredEach(t *testing.T, w *world) {
	_, first := w.fresh()
	_, second := w.fresh()
	w.askToStop(first.Reply.ID)
	results, err := w.Store.NoteCalls(w.ctx, []turns.CallNote{noteFor(first), noteFor(second)})
	require.NoError(t, err)
	require.Equal(t, []turns.NoteResult{{}, {Noted: true}}, results)
	results, err = w.Store.NoteCalls(w.ctx, nil)
	require.NoError(t, err)
	require.Empty(t, results)
}

func aBodyIsReadWhereItIsAskedFor(t *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.Call.Body = []byte("{\"prompt\":\"\x00\xff\"}")
	w.win(claim)
	require.Equal(t, claim.Call.Body, w.readCall(claim, claim.Call.ID).Body)
	w.bury(w.worker)
	open := w.stale(turns.StaleQuery{})[0].OpenCalls[0]
	require.True(t, open.HasBody)
	require.Nil(t, open.Body)
}

func whateverClosesACallDropsItsBody(t *testing.T, w *world) {
	for name, close := range map[string]func(turns.Claim){
		"an outcome": func(c turns.Claim) {
			require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(c.Key, c.Call.ID, turns.ClassOK)}))
		},
		"an ending": func(c turns.Claim) { w.finish(completing(c, 0)) },
		"an ending without it": func(c turns.Claim) {
			e := completing(c, 0)
			e.Call = nil
			w.finish(e)
		},
		"a sweep": func(c turns.Claim) {
			w.passDeadline(c.Reply.ID)
			require.True(t, w.sweep(expiring(c, 0)))
		},
		"a takeover": func(c turns.Claim) { require.True(t, w.takeFromNobody(c).Won) },
		"a stop of what is held": func(c turns.Claim) {
			w.finish(holding(c, 0))
			w.stop(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn)
		},
	} {
		claim := w.first(newConversation())
		claim.Call.Body = []byte("body")
		w.win(claim)
		call := w.readCall(claim, claim.Call.ID)
		require.True(t, call.HasBody)
		require.Equal(t, []byte("body"), call.Body)
		close(claim)
		require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND end_time IS NOT NULL AND request_body IS NULL",
			claim.Call.ID.UUID), name)
	}
}

func anOpenCallHasItsResponse(t *testing.T, w *world) {
	_, claim := w.fresh()
	results, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{{Fence: fenceOf(claim), ResponseID: "resp_1"}})
	require.NoError(t, err)
	require.True(t, results[0].Held)
	require.Equal(t, "resp_1", w.readCall(claim, claim.Call.ID).ResponseID)
	p := permitFor(claim, 2)
	require.True(t, w.permit(p).Granted)
	require.Empty(t, w.readCall(claim, p.Call.ID).ResponseID, "it belongs to the call before")
	_, err = w.Store.Checkpoint(w.ctx, []turns.Checkpoint{{Fence: fenceOf(claim), ResponseID: "resp_2"}})
	require.NoError(t, err)
	require.Empty(t, w.readCall(claim, claim.Call.ID).ResponseID)
	w.bury(w.worker)
	open := w.stale(turns.StaleQuery{})[0].OpenCalls
	require.Equal(t, []string{"", "resp_2"}, []string{open[0].ResponseID, open[1].ResponseID})
	require.Equal(t, "resp_2", w.readCall(claim, p.Call.ID).ResponseID)
}

func aClosedCallIsNotFound(t *testing.T, w *world) {
	c, claim := w.fresh()
	_, err := w.Store.ReadCall(w.ctx, foreign(c).key, claim.Call.ID)
	notFound(t, err)
	_, err = w.Store.ReadCall(w.ctx, c.key, newCallID())
	notFound(t, err)
	w.finish(completing(claim, 0))
	_, err = w.Store.ReadCall(w.ctx, c.key, claim.Call.ID)
	notFound(t, err)
}
