package scripted_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// The data of a PNG, a GIF and a PDF as far as their beginnings, and of what is none of them.
const (
	png  = "iVBORw0KGgo="
	gif  = "R0lGODlh"
	pdf  = "JVBERi0xLjc="
	none = "bm9uZQ=="
)

// mediaWire is how one wire says an image and a document; each is a format with the media type and the data.
type mediaWire struct {
	path, body              string // %s is a user's content
	answered                string // the same, with a history whose reply holds the content
	text, image, file, link string
	gif                     bool
}

var mediaWires = map[string]mediaWire{
	"anthropic": {
		path: messages, body: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[%s]}]}`,
		answered: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[%s]},{"role":"user","content":"b"}]}`,
		text:     `{"type":"text","text":"two words"}`,
		image:    `{"type":"image","source":{"type":"base64","media_type":"TYPE","data":"DATA"}}`,
		file:     `{"type":"document","source":{"type":"base64","media_type":"TYPE","data":"DATA"}}`,
		link:     `{"type":"image","source":{"type":"url","url":"DATA"}}`, gif: true,
	},
	"chat": {
		path: completions, body: `{"model":"m","messages":[{"role":"user","content":[%s]}]}`,
		answered: `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[%s]},{"role":"user","content":"b"}]}`,
		text:     `{"type":"text","text":"two words"}`,
		image:    `{"type":"image_url","image_url":{"url":"data:TYPE;base64,DATA"}}`,
		file:     `{"type":"file","file":{"filename":"a.pdf","file_data":"data:TYPE;base64,DATA"}}`,
		link:     `{"type":"image_url","image_url":{"url":"DATA"}}`, gif: true,
	},
	"responses": {
		path: "/v1/responses", body: `{"model":"m","input":[{"role":"user","content":[%s]}]}`,
		answered: `{"model":"m","input":[{"role":"user","content":"a"},{"role":"assistant","content":[%s]},{"role":"user","content":"b"}]}`,
		text:     `{"type":"input_text","text":"two words"}`,
		image:    `{"type":"input_image","image_url":"data:TYPE;base64,DATA"}`,
		file:     `{"type":"input_file","filename":"a.pdf","file_data":"data:TYPE;base64,DATA"}`,
		link:     `{"type":"input_image","image_url":"DATA"}`, gif: true,
	},
	"gemini": {
		path: "/v1beta/models/m:generateContent", body: `{"contents":[{"role":"user","parts":[%s]}]}`,
		answered: `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[%s]},{"role":"user","parts":[{"text":"b"}]}]}`,
		text:     `{"text":"two words"}`,
		image:    `{"inlineData":{"mimeType":"TYPE","data":"DATA"}}`,
		file:     `{"inlineData":{"mimeType":"TYPE","data":"DATA"}}`,
		link:     `{"fileData":{"mimeType":"image/png","fileUri":"DATA"}}`,
	},
	"interactions": {
		path: "/v1beta/interactions", body: `{"model":"m","input":[{"type":"user_input","content":[%s]}]}`,
		answered: `{"model":"m","input":[{"type":"user_input","content":[{"type":"text","text":"a"}]},{"type":"model_output","content":[%s]},{"type":"user_input","content":[{"type":"text","text":"b"}]}]}`,
		text:     `{"type":"text","text":"two words"}`,
		image:    `{"type":"image","mime_type":"TYPE","data":"DATA"}`,
		file:     `{"type":"document","mime_type":"TYPE","data":"DATA"}`,
		link:     `{"type":"image","mime_type":"image/png","uri":"DATA"}`,
	},
}

func filled(format, mediaType, data string) string {
	return strings.NewReplacer("TYPE", mediaType, "DATA", data).Replace(format)
}

func TestImagesAndDocumentsThatAVendorRefusesAreRefused(t *testing.T) {
	for name, w := range mediaWires {
		t.Run(name, func(t *testing.T) {
			s := scripted.Start(t, scripted.Script{})
			gifStatus := 400
			if w.gif {
				gifStatus = 200
			}
			for what, tt := range map[string]struct {
				content string
				status  int
			}{
				"an image":               {filled(w.image, "image/png", png), 200},
				"a GIF":                  {filled(w.image, "image/gif", gif), gifStatus},
				"a document":             {filled(w.file, "application/pdf", pdf), 200},
				"an image elsewhere":     {filled(w.link, "", "https://example.com/a.png"), 200},
				"a URL of nothing":       {filled(w.link, "", "a.png"), 400},
				"another type":           {filled(w.image, "image/tiff", png), 400},
				"no data":                {filled(w.image, "image/png", ""), 400},
				"no base64":              {filled(w.image, "image/png", "%%"), 400},
				"other bytes":            {filled(w.image, "image/png", gif), 400},
				"a document of no type":  {filled(w.file, "application/zip", none), 400},
				"a document that lies":   {filled(w.file, "application/pdf", none), 400},
				"an image after another": {filled(w.image, "image/png", png) + "," + filled(w.image, "image/png", none), 400},
			} {
				got := ask(t, s, w.path, strings.Replace(w.body, "%s", w.text+","+tt.content, 1))
				require.Equal(t, tt.status, got.status, "%s: %s", what, got.body)
			}
			got := ask(t, s, w.path, strings.Replace(w.answered, "%s", filled(w.image, "image/png", png), 1))
			require.Equal(t, 400, got.status, "an image of the assistant's")
		})
	}
}

func TestAnImageCountsAsAFixedInput(t *testing.T) {
	for name, w := range mediaWires {
		s := scripted.Start(t, scripted.Script{})
		content := w.text + "," + filled(w.image, "image/png", png) + "," + filled(w.file, "application/pdf", pdf)
		require.Equal(t, 200, ask(t, s, w.path, strings.Replace(w.body, "%s", content, 1)).status, name)
		require.Equal(t, 202, only(t, s).InputTokens, name)
	}
}

func TestAnImageInAResultIsTakenWhereTheWireHasAPlaceForIt(t *testing.T) {
	image := func(wire string) string { return filled(mediaWires[wire].image, "image/png", png) }
	for name, tt := range map[string]struct {
		path, body string
		status     int
	}{
		"anthropic": {messages, `{"model":"m","max_tokens":9,"messages":[` + user + "," + use + `,{"role":"user","content":[` +
			`{"type":"tool_result","tool_use_id":"a","content":[` + image("anthropic") + `]},{"type":"tool_result","tool_use_id":"b"}]}]}`, 200},
		"chat has none": {completions, `{"model":"m","messages":[` + user + "," + call + "," + toolA +
			`,{"role":"tool","tool_call_id":"b","content":[` + image("chat") + `]}]}`, 400},
		"responses": {"/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"a","output":[` + image("responses") + `]}]}`, 200},
		"gemini": {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"a"}]},` +
			`{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"cw=="}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":""},"parts":[` + image("gemini") + `]}}]}]}`, 200},
		"interactions": {"/v1beta/interactions", `{"model":"m","input":[{"type":"user_input","content":[{"type":"text","text":"a"}]},` +
			`{"type":"function_call","id":"a","name":"f","arguments":{}},{"type":"function_result","call_id":"a","name":"f","result":[` + image("interactions") + `]}]}`, 200},
	} {
		s := scripted.Start(t, scripted.Script{})
		got := ask(t, s, tt.path, tt.body)
		require.Equal(t, tt.status, got.status, "%s: %s", name, got.body)
	}
}

func TestWhatATextCitesIsSaidInEachVendorsWay(t *testing.T) {
	const cite = `{"type":"url_citation","url":"https://example.com"}`
	plan := scripted.Plan{Blocks: []scripted.Block{{Text: "a b", Cites: []string{cite}, Phase: "final_answer", Signature: "c2ln"}}}
	for name, want := range map[string]string{
		"anthropic":    `"delta":{"type":"citations_delta","citation":` + cite + `}`,
		"responses":    `"annotations":[` + cite + `],"logprobs":[]}],"phase":"final_answer"}`,
		"gemini":       `{"text":"b","thoughtSignature":"c2ln"}`,
		"interactions": `"delta":{"annotations":[` + cite + `],"type":"text_annotation_delta"}`,
	} {
		w := mediaWires[name]
		path, body := w.path, strings.Replace(w.body, "%s", w.text, 1)
		if name == "gemini" {
			path = "/v1beta/models/m:streamGenerateContent?alt=sse"
		} else {
			body = strings.Replace(body, `"model":"m"`, `"model":"m","stream":true`, 1)
		}
		got := ask(t, start(t, plan), path, body)
		require.Equal(t, 200, got.status)
		require.Contains(t, got.body, want, name)
		whole := ask(t, start(t, plan), w.path, strings.Replace(w.body, "%s", w.text, 1)).body
		if name != "gemini" {
			require.Contains(t, whole, cite, name)
		}
	}
	require.NotContains(t, ask(t, start(t, plan), completions, openaiBody).body, "example.com")
}
