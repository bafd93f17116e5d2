package arrays

var (
	responsesBody = shape{
		must("model", `"`), must("input", `"[`), may("instructions", `"n`), may("max_output_tokens", `0n`), may("temperature", `0n`),
		may("top_p", `0n`), may("tools", `[`), may("tool_choice", `"{`), may("parallel_tool_calls", `tn`), may("include", `[n`),
		may("metadata", `{n`), may("store", `tn`), may("background", `tn`), may("stream", `tn`), may("stream_options", `{n`),
		may("reasoning", `{n`), may("conversation", `"{n`), may("previous_response_id", `"n`), may("truncation", `"n`),
	}
	responsesStreaming = shape{may("include_obfuscation", `t`)}
	responsesTool      = shape{must("type", `"`), must("name", `"`), may("description", `"n`), must("parameters", `{n`), must("strict", `tn`)}
	responsesNamed     = shape{must("type", `"`), must("name", `"`)}
)

// responsesItems are the items of the input by type. A message may leave out its type.
var responsesItems = map[string]shape{
	"message":              {may("type", `"`), must("role", `"`), must("content", `"[`), may("id", `"`), may("status", `"`), may("phase", `"n`)},
	"reasoning":            {must("type", `"`), must("summary", `[`), may("encrypted_content", `"n`), may("content", `[`), may("id", `"`), may("status", `"`)},
	"function_call":        {must("type", `"`), must("call_id", `"`), must("name", `"`), must("arguments", `"`), may("id", `"`), may("status", `"`)},
	"function_call_output": {must("type", `"`), must("call_id", `"`), must("output", `"[`), may("id", `"n`), may("status", `"n`)},
}

// responsesParts are the parts of content by type, with the roles that may have them; "output" is that of a call.
var responsesParts = map[string]piece{
	"input_text":  {shape{must("type", `"`), must("text", `"`)}, "user system developer output"},
	"input_image": {shape{must("type", `"`), may("image_url", `"n`), may("file_id", `"n`), may("detail", `"`)}, "user output"},
	"input_file": {shape{must("type", `"`), may("file_data", `"`), may("file_id", `"n`), may("file_url", `"`), may("filename", `"`)},
		"user output"},
	"output_text": {shape{must("type", `"`), must("text", `"`), may("annotations", `[`), may("logprobs", `[n`)}, "assistant"},
	"refusal":     {shape{must("type", `"`), must("refusal", `"`)}, "assistant"},
}

var responsesSummary = shape{must("type", `"`), must("text", `"`)}

// responses checks a body of the Responses API.
func (c *checker) responses(root *node) {
	if !c.fits(root, responsesBody) {
		return
	}
	c.named(root, "model")
	if n := root.get("instructions"); n.is(isText) {
		c.demand(!blank(n.text), SystemBlank, n)
	}
	c.positive(root.get("max_output_tokens"), MaxTokens)
	c.between(root.get("temperature"), Sampling, 0, 2)
	c.between(root.get("top_p"), Sampling, 0, 1)
	if o := root.get("stream_options"); o.is(isObject) {
		c.demand(root.truth("stream"), FieldValue, o)
		c.fits(o, responsesStreaming)
	}
	c.responsesStoring(root)
	c.responsesTools(root)
	input := root.get("input")
	if input.is(isText) {
		c.demand(!blank(input.text), TextBlank, input)
		return
	}
	stored := root.get("store") == nil || root.truth("store")
	(&responsesInput{checker: c, calls: newPairing(c, callID), stored: stored, sealed: includes(root, "reasoning.encrypted_content")}).read(input)
}

// responsesStoring checks what only goes with responses that the vendor keeps, which it does unless it is told not to.
func (c *checker) responsesStoring(root *node) {
	kept := root.get("store") == nil || root.truth("store")
	if root.truth("background") {
		c.demand(kept, Storing, root.get("background"))
	}
	if n := root.get("metadata"); n.is(isObject) {
		c.notes(n, 16, 64, 512)
	}
	if a, b := root.get("conversation"), root.get("previous_response_id"); a != nil && b != nil {
		c.say(FieldValue, b)
	}
	for _, item := range root.list("include") {
		c.demand(item.is(isText) && item.text != "", FieldValue, item)
	}
}

func includes(root *node, what string) bool {
	for _, item := range root.list("include") {
		if item.text == what {
			return true
		}
	}
	return false
}

func (c *checker) responsesTools(root *node) {
	tools := newOffered(toolName)
	tools.addAll(c, root.list("tools"), responsesTool, "function", "parameters")
	choice := root.get("tool_choice")
	tools.choice(c, choice)
	if choice.is(isText) {
		c.oneOf(root, "tool_choice", FieldValue, "none", "auto", "required")
	}
	if choice.is(isObject) && c.fits(choice, responsesNamed) {
		c.oneOf(choice, "type", FieldValue, "function")
		tools.chosen(c, choice.get("name"))
	}
}

// responsesInput reads the items of a body.
type responsesInput struct {
	*checker
	calls *pairing
	// stored says that the vendor keeps the response, sealed that reasoning is asked for in its sealed form.
	stored, sealed bool
	// thought is reasoning that waits for what it led to.
	thought *node
	// asked says that the user has spoken.
	asked bool
	last  string // the kind of the newest item, for a message its role
}

func (r *responsesInput) read(input *node) {
	r.demand(len(input.items) > 0, ContentEmpty, input)
	for _, item := range input.items {
		kind := item.str("type")
		if kind == "" {
			kind = "message"
		}
		s, ok := responsesItems[kind]
		if !r.demand(ok, BlockUnknown, item) || !r.fits(item, s) {
			continue
		}
		r.demand(r.stored || item.get("id") == nil, ReasoningID, item)
		if kind == "message" {
			if !r.oneOf(item, "role", RoleUnknown, "user", "assistant", "system", "developer") {
				continue
			}
			kind = item.str("role")
		}
		r.order(item, kind)
		r.item(item, kind)
		r.last = kind
	}
	r.follows("")
	r.calls.close()
	if len(input.items) > 0 {
		r.demand(r.last == "user" || r.last == "function_call_output", LastNotUser, input)
	}
}

// order checks where an item may stand. What the assistant says after results are there begins another step.
func (r *responsesInput) order(item *node, kind string) {
	r.follows(kind)
	switch kind {
	case "user":
		r.calls.close()
		r.asked = true
	case "system", "developer":
		r.demand(r.last == "", SystemPlace, item)
	case "function_call_output":
		r.demand(r.asked, FirstNotUser, item)
	default:
		r.demand(r.asked, FirstNotUser, item)
		if r.calls.begun() {
			r.calls.close()
		}
	}
}

// follows checks that reasoning is followed by what it led to.
func (r *responsesInput) follows(kind string) {
	if r.thought == nil || kind == "reasoning" {
		return
	}
	r.demand(kind == "assistant" || kind == "function_call", ReasoningAlone, r.thought)
	r.thought = nil
}

func (r *responsesInput) item(item *node, kind string) {
	switch kind {
	case "reasoning":
		r.reasoning(item)
	case "function_call":
		r.calls.call(item, item.get("call_id"), item.get("name"))
		r.arguments(item.get("arguments"))
	case "function_call_output":
		r.calls.result(item.get("call_id"))
		r.parts(item.get("output"), "output")
	default:
		content := item.get("content")
		r.demand(!content.is(isText) || !blank(content.text), TextBlank, content)
		r.parts(content, kind)
	}
}

// reasoning goes back sealed, and is asked for so, unless the vendor keeps it.
func (r *responsesInput) reasoning(item *node) {
	r.thought = item
	r.demand(item.str("encrypted_content") != "", ReasoningUnsigned, item)
	r.demand(r.stored || r.sealed, ReasoningMissing, item)
	for _, s := range item.list("summary") {
		if r.fits(s, responsesSummary) {
			r.oneOf(s, "type", FieldValue, "summary_text")
			r.demand(s.str("text") != "", TextBlank, s)
		}
	}
}

func (r *responsesInput) parts(content *node, role string) {
	if !content.is(isArray) {
		return
	}
	r.demand(len(content.items) > 0, ContentEmpty, content)
	for _, p := range content.items {
		if r.piece(p, responsesParts, role) {
			r.part(p)
		}
	}
}

func (r *responsesInput) part(p *node) {
	switch kind := p.str("type"); kind {
	case "input_text", "output_text":
		r.demand(!blank(p.str("text")), TextBlank, p)
	case "refusal":
		r.demand(!blank(p.str("refusal")), TextBlank, p)
	case "input_image":
		url := p.get("image_url")
		r.demand(url.is(isText) != p.get("file_id").is(isText), FieldValue, p)
		r.oneOf(p, "detail", FieldValue, "auto", "low", "high")
		if url.is(isText) {
			r.imageURL(url)
		}
	case "input_file":
		r.file(p)
	}
}

func (r *responsesInput) file(p *node) {
	data, url := p.get("file_data"), p.get("file_url")
	sources := 0
	for _, n := range []*node{data, url, p.get("file_id")} {
		if n.is(isText) {
			sources++
		}
	}
	r.demand(sources == 1, FieldValue, p)
	r.address(url)
	if data != nil {
		r.demand(dataURL.MatchString(data.text), MediaData, data)
		r.inlineURL(data, documentTypes, maxDocument)
	}
}
