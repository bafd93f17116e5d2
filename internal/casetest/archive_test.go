package casetest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/archive"
)

// archived are the conversations of a world as a file.
func (w *world) archived() string {
	w.t.Helper()
	var file bytes.Buffer
	_, err := archive.Export(w.ctx, w.store().(turns.ArchiveReader), &file, archive.Selection{})
	require.NoError(w.t, err)
	return file.String()
}

// imports brings a file into a world.
func (w *world) imports(file string) archive.Imported {
	w.t.Helper()
	count, err := archive.Import(w.ctx, w.store().(turns.Archive), strings.NewReader(file), archive.Options{})
	require.NoError(w.t, err)
	return count
}

// lived are turns of one conversation with all that a conversation can go through.
type lived struct {
	calls, answers, pictures, edited, stopped *turnsv1.TurnInput
	deleted                                   *turnsv1.TurnInput
}

func picture() []*turnsv1.Block {
	return []*turnsv1.Block{
		{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: "what <is> this & that? \u2028 🦀"}}},
		{Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: "image/png", Source: &turnsv1.ImageBlock_Data{Data: onePixel}}}},
		{Kind: &turnsv1.Block_Document{Document: &turnsv1.DocumentBlock{MediaType: "text/plain", Title: "notes",
			Source: &turnsv1.DocumentBlock_Data{Data: []byte("some notes")}}}},
	}
}

// onePixel is a PNG of one pixel.
var onePixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\x0f\x00\x00\x01\x01\x00\x05\x18\xd8N\x00\x00\x00\x00IEND\xaeB`\x82")

// live lets a worker play such a history, on the wire of Anthropic.
func (w *worker) live() lived {
	w.t.Helper()
	conversation := newID()
	stops := stoppable("mid", 5000, 50)
	stops.Times = 1
	w.script(callsTools(), stops, plain(4))
	l := lived{calls: offering("anthropic", conversation)}
	w.turn(l.calls, nil).completes()
	// A turn that is stopped while it runs.
	l.stopped = offering("anthropic", conversation, resultOf("t1", "first try"), resultOf("t2", "now"))
	s := w.turn(l.stopped, nil)
	s.at(1 + 49*16)
	w.cancelTurn(l.stopped)
	s.abandons(cancelled)
	// Another branch beside it.
	l.answers = offering("anthropic", conversation, resultOf("t2", "later"), resultOf("t1", "twelve"))
	l.answers.Parent = &turnsv1.TurnInput_ParentId{ParentId: w.read(conversation, l.calls.GetTurnId()).GetReplies()[0].GetReplyId()}
	answered := w.turn(l.answers, nil).completes()
	_, err := w.regenerate(conversation, answered.reply, 0)
	require.NoError(w.t, err)
	w.eventually(func() bool { return w.number(qInFlight) == 0 })
	l.pictures = offering("anthropic", conversation, picture()...)
	w.turn(l.pictures, nil).completes()
	l.edited = offering("anthropic", conversation)
	w.turn(l.edited, nil).completes()
	l.deleted = w.another()
	return l
}

// another makes two further conversations: one with a title, labels and defaults that changed, and a deleted one.
func (w *worker) another() (deleted *turnsv1.TurnInput) {
	w.t.Helper()
	made := &turnsv1.Conversation{ConversationId: newID(), Title: "half an emoji \u200d <b>", Labels: map[string]string{"a b": "", "é": "🦀"},
		Defaults: &turnsv1.GenerationOptions{System: "be short & <kind>", Model: "openai"}}
	_, err := w.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: made})
	require.NoError(w.t, err)
	w.turn(ask(made.GetConversationId(), newID(), "hi"), nil).completes()
	made.Defaults = &turnsv1.GenerationOptions{System: "be long", Model: "anthropic"}
	_, err = w.convs.UpdateConversation(w.ctx, &turnsv1.UpdateConversationRequest{Conversation: made,
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"defaults"}}})
	require.NoError(w.t, err)
	w.turn(ask(made.GetConversationId(), newID(), "hi again"), nil).completes()
	deleted = ask(newID(), newID(), "forget me")
	_, err = w.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{
		Conversation: &turnsv1.Conversation{ConversationId: deleted.GetConversationId(), Title: "forgotten"}})
	require.NoError(w.t, err)
	w.turn(deleted, nil).completes()
	w.deleteConversation(deleted.GetConversationId())
	w.isErased(deleted.GetConversationId(), 1)
	return deleted
}

func TestAHistoryMovesToAnotherEngineAndBackAndGoesOnThere(t *testing.T) {
	onEachEngine(t, func(t *testing.T, from *world) {
		other, again := postgresWorld, sqliteWorld
		if from.engine == "postgres" {
			other, again = again, other
		}
		l := from.serve().live()
		file := from.archived()
		require.Contains(t, file, theSeal, "what goes back to the vendor is in the file")
		require.Equal(t, file, from.archived(), "two copies are the same")

		to := other(t)
		require.Equal(t, 3, to.imports(file).Written)
		require.Equal(t, file, to.archived())
		require.Equal(t, archive.Imported{Already: 3}, to.imports(file), "again changes nothing")
		back := again(t)
		back.imports(to.archived())
		require.Equal(t, file, back.archived())

		s := to.serve()
		to.script(plain(3))
		was, is := from.serve(), s
		for _, in := range []*turnsv1.TurnInput{l.calls, l.answers, l.pictures, l.edited, l.stopped} {
			require.Empty(t, differs(was.read(in.GetConversationId(), in.GetTurnId()), is.read(in.GetConversationId(), in.GetTurnId())))
		}
		for _, in := range []*turnsv1.TurnInput{l.calls, l.answers, l.pictures, l.edited} {
			require.Equal(t, replayed, s.turn(in, nil).completes().result)
		}
		require.Equal(t, replayed, s.turn(l.stopped, nil).abandons(cancelled).result)
		_, err := s.submit(l.deleted)
		to.fails(err, codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
		to.paid(0, 0)
		changed := offering("anthropic", l.calls.GetConversationId())
		changed.TurnId = l.calls.GetTurnId()
		changed.Content[0].GetText().Text = "something else"
		_, err = s.submit(changed)
		to.fails(err, codes.AlreadyExists, "TURN_ID_REUSED", "NEW_ID")
		// The provider refuses thoughts that are not signed and calls without a result: what goes on is whole.
		s.turn(offering("anthropic", l.calls.GetConversationId()), nil).completes()
		to.paid(1, 1)
	})
}

func TestARunningReplyIsAbandonedInTheCopyAndItsTurnCanBeSentAgainThere(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("", "open", 20, 5))
		in := ask(newID(), newID(), "hi")
		stream := s.turn(in, nil)
		stream.at(1 + 4*16)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 60`) == 1 })
		file := w.archived()
		require.Contains(t, file, `"reason":"shutdown"`)
		require.NoError(t, w.provider.OpenGate("open"))
		stream.completes()

		to := sqliteWorld(t)
		require.Equal(t, archive.Imported{Written: 1, Turns: 1, Replies: 1, Calls: 1}, to.imports(file))
		there := to.serve()
		to.script(plain(2))
		require.Equal(t, turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED, there.turn(in, nil).completes().result)
		to.paid(1, 1)
		to.stands(map[string]int{qOpen: 0, qLive: 1, qReplies: 2})
	})
}

func TestAFileWithOneWrongLineLeavesNothingOfItsConversation(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(scripted.Rule{Name: "plain", Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 2, Seed: 2}}})
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).completes()
		s.turn(ask(in.GetConversationId(), newID(), "more"), nil).completes()
		file := w.archived()
		to := sqliteWorld(t)
		if w.engine == "sqlite" {
			to = postgresWorld(t)
		}
		second := strings.Split(file, "\n")
		second[5] = strings.Replace(second[5], `"responds_to":"`+in.GetTurnId(), `"responds_to":"`+newID(), 1)
		second[5] = strings.Replace(second[5], `"attempt":1`, `"attempt":0`, 1)
		_, err := archive.Import(to.ctx, to.store().(turns.Archive), strings.NewReader(strings.Join(second, "\n")), archive.Options{})
		var wrong *archive.LineError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, 6, wrong.Line)
		to.stands(map[string]int{qConvs: 0, qUsers: 0, qReplies: 0, qLedger: 0})
		require.Equal(t, 1, to.imports(file).Written)
	})
}

// differs is what two answers differ in, but for what is of the moment of asking.
func differs(a, b *turnsv1.GetTurnResponse) string {
	if a.String() == b.String() {
		return ""
	}
	return a.String() + "\n" + b.String()
}
