package llmtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// The beginnings of media, which is as much as a provider of tests looks at.
var (
	png = turns.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1A\n")}
	pdf = turns.Document{MediaType: "application/pdf", Title: "Report 1", Data: []byte("%PDF-1.7")}
	// note is a document of text, whose quotes and runes must come through.
	note = turns.Document{MediaType: "text/markdown", Title: "note", Data: []byte("# \"你好\"\n")}
	link = turns.Image{MediaType: "image/png", URL: "https://example.com/a.png?x=1&y=2"}
)

// cited is a text with all that a vendor may write beside one: each wire says what it has a place for.
var cited = scripted.Block{Text: "It is nine.", Cites: []string{cite}, Phase: "final_answer", Signature: "c2lnbmVk"}

const cite = `{"type":"url_citation","url":"https://example.com/?a=1&b=2","title":"<ü> \"q\"","start_index":0,"end_index":5}`

// native is how a wire takes back what it said: a text with what it cites, and a refusal.
var native = map[llm.Wire]struct{ text, refusal string }{
	llm.WireAnthropicMessages: {text: `{"type":"text","text":"It is nine.","citations":[` + cite + `]}`},
	llm.WireOpenAIResponses: {
		text:    `"role":"assistant","content":[{"type":"output_text","text":"It is nine.","annotations":[` + cite + `]}],"phase":"final_answer"}`,
		refusal: `"role":"assistant","content":[{"type":"refusal","refusal":"I can not."}]}`,
	},
	llm.WireGeminiGenerate:     {text: `{"text":"It is nine.","thoughtSignature":"c2lnbmVk"}`},
	llm.WireGeminiInteractions: {text: `{"type":"text","text":"It is nine.","annotations":[` + cite + `]}`},
}

// MediaForms are how a wire says an image, an image elsewhere and a PDF; empty is that it takes none.
type MediaForms struct{ Image, Link, PDF string }

// forms are those of the vendors themselves. A server that is compatible with openai.chat takes no PDF.
var forms = map[llm.Wire]MediaForms{
	llm.WireAnthropicMessages: {
		Image: `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`,
		Link:  `{"type":"image","source":{"type":"url","url":"https://example.com/a.png?x=1&y=2"}}`,
		PDF:   `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjc="},"title":"Report 1"}`,
	},
	llm.WireOpenAIChat: {
		Image: `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`,
		Link:  `{"type":"image_url","image_url":{"url":"https://example.com/a.png?x=1&y=2"}}`,
		PDF:   `{"type":"file","file":{"filename":"Report 1.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjc="}}`,
	},
	llm.WireOpenAIResponses: {
		Image: `{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}`,
		Link:  `{"type":"input_image","image_url":"https://example.com/a.png?x=1&y=2","detail":"auto"}`,
		PDF:   `{"type":"input_file","filename":"Report 1.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjc="}`,
	},
	llm.WireGeminiGenerate: {
		Image: `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`,
		Link:  `{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a.png?x=1&y=2"}}`,
		PDF:   `{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0xLjc="}}`,
	},
	llm.WireGeminiInteractions: {
		Image: `{"type":"image","data":"iVBORw0KGgo=","mime_type":"image/png"}`,
		Link:  `{"type":"image","uri":"https://example.com/a.png?x=1&y=2","mime_type":"image/png"}`,
		PDF:   `{"type":"document","data":"JVBERi0xLjc=","mime_type":"application/pdf"}`,
	},
}

// runContent checks that what is no plain text goes out as the wire has it, and what a vendor wrote beside text goes back.
func runContent(t *testing.T, a llm.Adapter) {
	t.Run("an image, a URL, a PDF and a document of text", func(t *testing.T) { runMedia(t, a) })
	t.Run("an image in a result", func(t *testing.T) { runImageInResult(t, a) })
	t.Run("what is older than the model is left out by words", func(t *testing.T) { runLeftOut(t, a) })
	t.Run("what is written beside text goes back as it came", func(t *testing.T) { runNative(t, a) })
}

// vendors opens an adapter as towards the vendor itself.
func vendors(t *testing.T, a llm.Adapter, url string) subject {
	s := open(t, a, url, turns.Limits{})
	if a.Wire == llm.WireOpenAIChat {
		s.caller = a.Open(s.http, llm.Endpoint{Name: "test", Wire: a.Wire, BaseURL: url, Key: secretKey, Dialect: llm.DialectVendor})
	}
	return s
}

func fromUser(content ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleUser, Content: content}
}

func fromModel(content ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleAssistant, Content: content}
}

func (s subject) build(t *testing.T, messages ...turns.Message) turns.Request {
	t.Helper()
	req, err := s.caller.Build(s.route, turns.Prompt{Messages: messages})
	require.NoError(t, err)
	again, err := s.caller.Build(s.route, turns.Prompt{Messages: messages})
	require.NoError(t, err)
	require.Equal(t, string(req.Body), string(again.Body), "the same prompt makes the same bytes")
	return req
}

// takes sends a request to a provider that refuses what the vendor would.
func (s subject) takes(t *testing.T, req turns.Request) {
	t.Helper()
	r := Collect(t, s.caller.Generate(t.Context(), turns.Call{Request: req, Key: callKey}))
	require.Nil(t, r.Err, "%s", req.Body)
	require.NotNil(t, r.Finished)
}

func runMedia(t *testing.T, a llm.Adapter) {
	server := scripted.Start(t, scripted.Script{})
	s := vendors(t, a, server.URL())
	req := s.build(t, fromUser(png, link, pdf, note, turns.Text{Text: promptWords}))
	for _, form := range []string{forms[a.Wire].Image, forms[a.Wire].Link, forms[a.Wire].PDF} {
		require.Contains(t, string(req.Body), form)
	}
	require.Contains(t, string(req.Body), `# \"你好\"`)
	require.Contains(t, string(req.Body), "note")
	require.Empty(t, req.Healed)
	s.takes(t, req)
	require.GreaterOrEqual(t, server.Calls()[0].InputTokens, 300)
}

func runImageInResult(t *testing.T, a llm.Adapter) {
	server := scripted.Start(t, scripted.Script{})
	for _, model := range []string{"demo", "gemini-2.5-flash"} { // which has no place for one in its results
		s := vendors(t, a, server.URL())
		s.route.ProviderModel = model
		req := s.build(t, fromUser(turns.Text{Text: "look"}),
			fromModel(turns.ToolUse{ID: "c1", Name: "shoot", InputJSON: "{}"}, turns.ToolUse{ID: "c2", Name: "shoot", InputJSON: "{}"}),
			fromUser(turns.ToolResult{ToolUseID: "c1", Content: []turns.Block{turns.Text{Text: "a tree"}, png}},
				turns.ToolResult{ToolUseID: "c2", IsError: true, Content: []turns.Block{link}}, turns.Text{Text: promptWords}))
		require.Contains(t, string(req.Body), forms[a.Wire].Image)
		require.Contains(t, string(req.Body), forms[a.Wire].Link)
		require.Contains(t, string(req.Body), "a tree")
		require.Empty(t, req.Healed)
		s.takes(t, req)
	}
}

func runLeftOut(t *testing.T, a llm.Adapter) {
	server := scripted.Start(t, scripted.Script{})
	s := vendors(t, a, server.URL())
	tiff := turns.Image{MediaType: "image/tiff", Data: []byte("II*")}
	req := s.build(t, fromUser(turns.Text{Text: "look"}, tiff), fromModel(turns.Text{Text: "I see."}), fromUser(turns.Text{Text: promptWords}, png))
	require.Contains(t, string(req.Body), "[image left out: the model that answers now can't be sent it]")
	require.Contains(t, string(req.Body), forms[a.Wire].Image)
	require.Equal(t, turns.Healed{turns.HealedMedia: 1}, req.Healed)
	s.takes(t, req)

	_, err := s.caller.Build(s.route, turns.Prompt{Messages: []turns.Message{fromUser(turns.Text{Text: promptWords}, tiff)}})
	var refused *turns.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, turns.CodeInvalidField, refused.Code)
	require.Equal(t, "input.content[1].image", refused.Field)
	require.NotContains(t, refused.Error(), promptWords)
}

// runNative has a reply streamed and sends it back: to its vendor, to the same wire with the seals of another, and to a model
// that did not make it.
func runNative(t *testing.T, a llm.Adapter) {
	for name, block := range map[string]scripted.Block{"text": cited, "refusal": {Refusal: "I can not."}} {
		server := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{block}}}}})
		s := vendors(t, a, server.URL())
		var content, foreign []turns.Block
		for _, b := range s.collect(t).Blocks {
			content, foreign = append(content, b.stored(b.Seal)), append(foreign, b.stored("other.wire/demo\n[{}]"))
		}
		want := native[a.Wire].text
		if name == "refusal" {
			want = native[a.Wire].refusal
			if a.Wire == llm.WireOpenAIChat {
				want = `{"role":"assistant","content":null,"refusal":"I can not."}`
			}
		}
		req := s.build(t, fromUser(turns.Text{Text: "hi"}), fromModel(content...), fromUser(turns.Text{Text: promptWords}))
		if want != "" {
			require.Contains(t, string(req.Body), want)
		}
		s.takes(t, req)
		neutral := s.build(t, fromUser(turns.Text{Text: "hi"}), fromModel(foreign...), fromUser(turns.Text{Text: promptWords}))
		if want != "" {
			require.NotContains(t, string(neutral.Body), want)
		}
		require.Contains(t, string(neutral.Body), block.Text+block.Refusal)
		require.NotContains(t, string(neutral.Body), "citation")
		require.NotContains(t, string(neutral.Body), "other.wire")
		s.takes(t, neutral)
	}
}

// stored is a block as a history has it, with a seal.
func (b Block) stored(seal string) turns.Block {
	switch b.Kind {
	case turns.KindThinking:
		return turns.Thinking{Text: b.Text, Redacted: b.Redacted, Seal: seal}
	case turns.KindToolUse:
		return turns.ToolUse{ID: b.ToolUseID, Name: b.ToolName, InputJSON: b.Text, Seal: seal}
	case turns.KindRefusal:
		return turns.Refusal{Text: b.Text, Category: b.Type, Seal: seal}
	}
	return turns.Text{Text: b.Text, Seal: seal}
}
