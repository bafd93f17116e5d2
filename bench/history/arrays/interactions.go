package arrays

var (
	interactionBody = shape{
		must("model", `"`), must("input", `"[`), may("system_instruction", `"`), may("tools", `[`), may("generation_config", `{`),
		may("stream", `t`), may("store", `t`), may("background", `t`), may("labels", `{`), may("previous_interaction_id", `"`),
	}
	interactionTool   = shape{must("type", `"`), must("name", `"`), may("description", `"`), may("parameters", `{`)}
	interactionConfig = shape{
		may("max_output_tokens", `0`), may("temperature", `0`), may("top_p", `0`), may("stop_sequences", `[`), may("tool_choice", `"{`),
		may("thinking_level", `"`), may("thinking_summaries", `"`), may("seed", `0`),
	}
	interactionNamed   = shape{must("allowed_tools", `{`)}
	interactionAllowed = shape{must("mode", `"`), must("tools", `[`)}
)

// interactionSteps are the steps of the input by type.
var interactionSteps = map[string]shape{
	"user_input":      {must("type", `"`), must("content", `[`)},
	"model_output":    {must("type", `"`), must("content", `[`)},
	"thought":         {must("type", `"`), must("signature", `"`), may("summary", `[`)},
	"function_call":   {must("type", `"`), must("id", `"`), must("name", `"`), must("arguments", `{[0"tn`)},
	"function_result": {must("type", `"`), must("call_id", `"`), may("name", `"`), must("result", `"{[`), may("is_error", `t`)},
}

// interactionContents are the pieces of a step's content by type, with the steps that may have them.
var interactionContents = map[string]piece{
	"text":     {shape{must("type", `"`), must("text", `"`), may("annotations", `[`)}, "user_input model_output thought function_result"},
	"image":    {shape{must("type", `"`), may("data", `"`), may("uri", `"`), may("mime_type", `"`)}, "user_input function_result"},
	"document": {shape{must("type", `"`), may("data", `"`), may("uri", `"`), may("mime_type", `"`)}, "user_input"},
}

// interactions checks a body of the Interactions API.
func (c *checker) interactions(root *node) {
	if !c.fits(root, interactionBody) {
		return
	}
	c.named(root, "model")
	if n := root.get("system_instruction"); n != nil {
		c.demand(!blank(n.text), SystemBlank, n)
	}
	kept := root.get("store") == nil || root.truth("store")
	if root.truth("background") {
		c.demand(kept, Storing, root.get("background"))
	}
	if n := root.get("labels"); n != nil {
		c.notes(n, 64, 63, 63)
		for _, item := range n.items {
			c.demand(labelText.MatchString(item.name) && labelText.MatchString(item.text), Metadata, item)
		}
	}
	c.interactionOptions(root)
	input := root.get("input")
	if input.is(isText) {
		c.demand(!blank(input.text), TextBlank, input)
		return
	}
	(&interactionInput{checker: c, calls: newPairing(c, callID)}).read(input)
}

func (c *checker) interactionOptions(root *node) {
	tools := newOffered(declaredName)
	tools.addAll(c, root.list("tools"), interactionTool, "function", "parameters")
	config := root.get("generation_config")
	if config == nil || !c.fits(config, interactionConfig) {
		return
	}
	c.positive(config.get("max_output_tokens"), MaxTokens)
	c.between(config.get("temperature"), Sampling, 0, 2)
	c.stops(config.get("stop_sequences"), 5)
	choice := config.get("tool_choice")
	tools.choice(c, choice)
	if choice.is(isText) {
		c.oneOf(config, "tool_choice", FieldValue, "auto", "any", "none", "validated")
	}
	if !choice.is(isObject) || !c.fits(choice, interactionNamed) || !c.fits(choice.get("allowed_tools"), interactionAllowed) {
		return
	}
	allowed := choice.get("allowed_tools")
	c.oneOf(allowed, "mode", FieldValue, "auto", "any", "validated")
	c.demand(len(allowed.list("tools")) > 0, FieldValue, allowed)
	for _, name := range allowed.list("tools") {
		tools.chosen(c, name)
	}
}

// interactionInput reads the steps of a body.
type interactionInput struct {
	*checker
	calls *pairing
	last  string
}

func (s *interactionInput) read(input *node) {
	s.demand(len(input.items) > 0, ContentEmpty, input)
	for _, step := range input.items {
		kind := step.str("type")
		known, ok := interactionSteps[kind]
		if !s.demand(ok, BlockUnknown, step) || !s.fits(step, known) {
			continue
		}
		s.order(step, kind)
		s.step(step, kind)
		s.last = kind
	}
	s.calls.close()
	if len(input.items) > 0 {
		s.demand(s.last == "user_input" || s.last == "function_result", LastNotUser, input)
	}
}

// order checks where a step may stand: nothing but calls and results between a call and its result.
func (s *interactionInput) order(step *node, kind string) {
	if s.last == "" {
		s.demand(kind == "user_input", FirstNotUser, step)
	}
	switch kind {
	case "function_result":
		return
	case "function_call", "thought":
		if !s.calls.begun() {
			return
		}
	}
	s.calls.close()
}

func (s *interactionInput) step(step *node, kind string) {
	switch kind {
	case "user_input", "model_output":
		content := step.get("content")
		s.demand(len(content.items) > 0, ContentEmpty, content)
		s.content(content.items, kind)
	case "thought":
		s.demand(signature(step.str("signature")), ReasoningUnsigned, step)
		s.content(step.list("summary"), kind)
	case "function_call":
		s.calls.call(step, step.get("id"), step.get("name"))
		s.demand(step.get("arguments").is(isObject), CallInput, step)
	case "function_result":
		s.result(step)
	}
}

func (s *interactionInput) result(step *node) {
	call := s.calls.result(step.get("call_id"))
	if name := step.get("name"); call != nil && name != nil {
		s.demand(name.text == call.name, ResultName, name)
	}
	result := step.get("result")
	if step.truth("is_error") {
		s.demand(len(result.items) > 0 || !blank(result.text), ErrorEmpty, step)
	}
	if result.is(isArray) {
		s.content(result.items, "function_result")
	}
}

func (s *interactionInput) content(items []*node, step string) {
	for _, p := range items {
		if !s.piece(p, interactionContents, step) {
			continue
		}
		kind, data, uri := p.str("type"), p.get("data"), p.get("uri")
		if kind == "text" {
			s.demand(!blank(p.str("text")), TextBlank, p)
			continue
		}
		s.demand((data == nil) != (uri == nil), FieldValue, p)
		s.address(uri)
		if data == nil {
			continue
		}
		most := maxDocument
		if kind == "image" {
			most = maxImage
			s.demand(geminiImages[p.str("mime_type")], MediaType, p)
		} else {
			s.demand(documentTypes[p.str("mime_type")], MediaType, p)
		}
		s.base64Of(data, most)
	}
}
