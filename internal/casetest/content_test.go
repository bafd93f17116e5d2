package casetest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// fiveWires are a model on each.
var fiveWires = []string{"anthropic", "openai", "conversation", "generate", "interactions"}

// The beginnings of media, which is as much as the scripted provider looks at.
var (
	aPNG = []byte("\x89PNG\r\n\x1A\n")
	aPDF = []byte("%PDF-1.7")
)

const pngInBase64 = "iVBORw0KGgo="

func imageBlock(mediaType string, data []byte) *turnsv1.Block {
	return &turnsv1.Block{Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: mediaType, Source: &turnsv1.ImageBlock_Data{Data: data}}}}
}

func documentBlock(mediaType, title string, data []byte) *turnsv1.Block {
	return &turnsv1.Block{Kind: &turnsv1.Block_Document{Document: &turnsv1.DocumentBlock{MediaType: mediaType, Title: title, Source: &turnsv1.DocumentBlock_Data{Data: data}}}}
}

func textBlock(text string) *turnsv1.Block {
	return &turnsv1.Block{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}
}

// sent is all that the workers of a world write to the provider.
type sent struct {
	mu  sync.Mutex
	all strings.Builder
}

// overhear records what goes to the provider, from the next worker on.
func (w *world) overhear() *sent {
	heard := new(sent)
	w.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return overheard{conn, heard}, err
	}
	return heard
}

// next is what was written since it was asked last.
func (s *sent) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.all.String()
	s.all.Reset()
	return text
}

type overheard struct {
	net.Conn
	sent *sent
}

func (o overheard) Write(b []byte) (int, error) {
	o.sent.mu.Lock()
	o.sent.all.Write(b)
	o.sent.mu.Unlock()
	return o.Conn.Write(b)
}

// on plays a turn of some content in a conversation and demands that it completes.
func (w *worker) on(model, conversation string, content ...*turnsv1.Block) *turnsv1.TurnInput {
	w.t.Helper()
	in := ask(conversation, newID(), "hi")
	in.Content, in.Options = content, &turnsv1.GenerationOptions{Model: model}
	w.turn(in, nil).completes()
	return in
}

func TestAnImageIsAskedAboutOnEveryWireAndStaysInTheHistory(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		heard := w.overhear()
		s := w.serve()
		for _, model := range fiveWires {
			conversation := newID()
			in := s.on(model, conversation, imageBlock("image/png", aPNG), documentBlock("text/plain", "note", []byte("nine")), textBlock("what is this?"))
			body := heard.next()
			require.Contains(t, body, pngInBase64, model)
			require.Contains(t, body, "nine", model)
			kept := s.read(conversation, in.GetTurnId()).GetTurn().GetContent()
			require.Equal(t, aPNG, kept[0].GetImage().GetData())
			require.Equal(t, "note", kept[1].GetDocument().GetTitle())
			s.on(model, conversation, textBlock("and now?"))
			require.Contains(t, heard.next(), pngInBase64, model)

			other := ask(conversation, in.GetTurnId(), "hi")
			other.Content, other.Options = []*turnsv1.Block{imageBlock("image/png", append(aPNG[:8:8], 1)), in.GetContent()[1], in.GetContent()[2]}, in.GetOptions()
			_, err := s.submit(other)
			w.fails(err, codes.AlreadyExists, "TURN_ID_REUSED", "NEW_ID")
		}
	})
}

func TestAPDFIsTakenWhereTheEndpointTakesOneAndRefusedByFieldBeforeAnyCallElsewhere(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		for i, model := range []string{"anthropic", "conversation", "generate", "interactions"} {
			s.on(model, newID(), documentBlock("application/pdf", "report", aPDF), textBlock("sum it up"))
			w.paid(i+1, i+1)
		}
		in := askOf("openai") // a server that is compatible with the vendor's
		in.Content = append(in.Content, documentBlock("application/pdf", "report", aPDF))
		_, err := s.submit(in)
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		require.ErrorContains(t, err, "input.content[1].document")
		w.paid(4, 4)
	})
}

func TestAnImageInAToolResultReachesTheModelOnEveryWire(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		heard := w.overhear()
		s := w.serve()
		for _, model := range fiveWires {
			w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: "t1", Name: "now"}}}}}, plain(4))
			conversation := newID()
			in := ask(conversation, newID(), "look")
			in.Options = &turnsv1.GenerationOptions{Model: model, Tools: []*turnsv1.Tool{{Name: "now"}}}
			s.turn(in, nil).completes()
			heard.next()
			shot := resultOf("t1", "a shot")
			shot.GetToolResult().Content = append(shot.GetToolResult().Content, imageBlock("image/png", aPNG))
			s.on(model, conversation, shot)
			body := heard.next()
			require.Contains(t, body, pngInBase64, model)
			require.Contains(t, body, "a shot", model)
		}
	})
}

// A conversation with an image moves to an endpoint that does not take its type: the history says so, what is stored stays,
// and back at the first endpoint it is there again.
func TestAnImageThatTheNextModelCanNotBeSentIsLeftOutByWordsAndStaysStored(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		heard := w.overhear()
		s := w.serve()
		conversation := newID()
		gif := []byte("GIF89a-the-image")
		first := s.on("anthropic", conversation, imageBlock("image/gif", gif), textBlock("what is this?"))
		require.Contains(t, heard.next(), "R0lGODlh")
		s.on("generate", conversation, textBlock("and now?"))
		body := heard.next()
		require.NotContains(t, body, "R0lGODlh")
		require.Contains(t, body, "[image left out: the model that answers now can't be sent it]")
		require.Equal(t, int64(1), w.counted("turnd.history.healed", "kind", "media_left_out"))
		require.Equal(t, gif, s.read(conversation, first.GetTurnId()).GetTurn().GetContent()[0].GetImage().GetData())
		s.on("anthropic", conversation, textBlock("and here?"))
		require.Contains(t, heard.next(), "R0lGODlh")

		in := askOf("generate")
		in.ConversationId, in.Content = conversation, append(in.Content, imageBlock("image/gif", gif))
		_, err := s.submit(in)
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		require.ErrorContains(t, err, "input.content[1].image")
		w.paid(3, 3)
	})
}

// theCite is what a text cites, in bytes that decoding and encoding would change.
const theCite = `{"type":"url_citation","url":"https://example.com/?a=1&b=2","n":12345678901234567890.10,"title":"<\u00fc> 🦀"}`

func TestWhatAVendorWroteBesideTextGoesBackToItToTheByteAndToNobodyElse(t *testing.T) {
	for model, want := range map[string]string{
		"anthropic":    `{"type":"text","text":"It is nine.","citations":[` + theCite + `]}`,
		"conversation": `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is nine.","annotations":[` + theCite + `]}],"phase":"final_answer"}`,
		"generate":     `{"text":"It is nine.","thoughtSignature":"` + theSeal + `"}`,
		"interactions": `{"type":"text","text":"It is nine.","annotations":[` + theCite + `]}`,
	} {
		t.Run(model, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				heard := w.overhear()
				s := w.serve()
				w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{
					{Text: "It is nine.", Cites: []string{theCite}, Phase: "final_answer", Signature: theSeal}}}}, plain(4))
				in := askOf(model)
				blocks, _ := s.hear(in)
				s.sameBlocks(in, blocks)
				got := s.read(in.GetConversationId(), in.GetTurnId())
				require.Equal(t, "It is nine.", stored(got.GetReplies()[0]))
				require.NotContains(t, got.String(), "example.com", "no client sees it")
				heard.next()
				s.on(model, in.GetConversationId(), textBlock("again"))
				require.Contains(t, heard.next(), want)
				for _, other := range fiveWires {
					if other == model {
						continue
					}
					s.on(other, in.GetConversationId(), textBlock("and you?"))
					body := heard.next()
					require.Contains(t, body, "It is nine.", other)
					require.NotContains(t, body, "example.com", other)
					require.NotContains(t, body, theSeal, other)
				}
			})
		})
	}
}

// What a client sends badly is refused by its field before anything is written, and what a model says badly loses nothing.
func TestHostileContentIsRefusedOrHealed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		for name, content := range map[string][]*turnsv1.Block{
			"an image that lies":     {textBlock("a"), imageBlock("image/png", []byte("GIF89a"))},
			"an empty image":         {textBlock("a"), imageBlock("image/png", nil)},
			"an image of no type":    {textBlock("a"), imageBlock("", aPNG)},
			"an empty document":      {textBlock("a"), documentBlock("application/pdf", "", nil)},
			"text that is a picture": {textBlock("a"), documentBlock("text/plain", "", aPNG)},
			"a file of this machine": {textBlock("a"), {Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: "image/png",
				Source: &turnsv1.ImageBlock_Url{Url: "file:///etc/passwd"}}}}},
		} {
			in := askOf("anthropic")
			in.Content = content
			_, err := s.submit(in)
			w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
			require.ErrorContains(t, err, "input.content[1].", name)
		}
		w.paid(0, 0)
		w.stands(map[string]int{qUsers: 0, qConvs: 0})

		conversation := newID()
		s.on("anthropic", conversation, textBlock(strings.Repeat("the same words again. ", 1<<20/22)))
		const arguments = 2 << 20
		long := `{"a":"` + strings.Repeat("x", arguments) + `"}`
		w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{Write: scripted.WriteOnce,
			Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: "t1", Name: "now", Input: long}}}}}, plain(4))
		in := ask(conversation, newID(), "call")
		in.Options = &turnsv1.GenerationOptions{Model: "anthropic", Tools: []*turnsv1.Tool{{Name: "now"}}}
		blocks, _ := s.hear(in)
		require.Equal(t, long, blocks[0].GetToolUse().GetInputJson())
		s.on("anthropic", conversation, resultOf("t1", "done"))
		w.paid(3, 3)
	})
}

func TestC74ANULInTheArgumentsOfACallLosesNothing(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{
			{ToolUse: &scripted.ToolUse{ID: "t1", Name: "now", Input: "{\"a\":\"x\x00y\",\"b\":\"\\u0000 \\ud83e\"}"}}}}}, plain(4))
		in := offering(model, newID())
		in.Options.ThinkingBudgetTokens = 0
		blocks, _ := s.hear(in)
		require.Equal(t, `{"a":"xy","b":"\u0000 \ud83e"}`, blocks[0].GetToolUse().GetInputJson(), "escapes are as the model wrote them")
		s.sameBlocks(in, blocks)
		s.on(model, in.GetConversationId(), resultOf("t1", "done"))
		require.Equal(t, int64(1), w.counted("turnd.history.healed", "kind", "tool_input"), "half a pair went out as U+FFFD")
		w.paid(2, 2)
	})
}

func TestC75HalvesOfCharactersOfAModelAreMadeWholeOnEveryWire(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		const text = "naive 你好🦀 👩‍👩‍👧"
		for _, model := range fiveWires {
			w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{{Text: text}}, Write: scripted.WriteByte}}, plain(4))
			in := askOf(model)
			blocks, _ := s.hear(in)
			require.Equal(t, text, blocks[0].GetText().GetText(), model)
			require.True(t, utf8.ValidString(stored(s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0])))
		}
	})
}
