package arrays

var (
	chatBody = shape{
		must("model", `"`), must("messages", `[`), may("max_completion_tokens", `0n`), may("max_tokens", `0n`), may("temperature", `0n`),
		may("top_p", `0n`), may("stop", `"[n`), may("stream", `tn`), may("stream_options", `{n`), may("tools", `[`),
		may("tool_choice", `"{`), may("parallel_tool_calls", `t`), may("store", `tn`), may("metadata", `{n`), may("seed", `0n`),
		may("reasoning_effort", `"n`), may("n", `0n`), may("user", `"`),
	}
	chatStreaming = shape{may("include_usage", `t`), may("include_obfuscation", `t`)}
	chatTool      = shape{must("type", `"`), must("function", `{`)}
	chatFunction  = shape{must("name", `"`), may("description", `"`), may("parameters", `{`), may("strict", `tn`)}
	chatNamed     = shape{must("name", `"`)}
	chatCall      = shape{must("id", `"`), must("type", `"`), must("function", `{`)}
	chatCalled    = shape{must("name", `"`), must("arguments", `"`)}
)

// chatRoles are the fields that a message of each role has.
var chatRoles = map[string]shape{
	"system":    {must("role", `"`), must("content", `"[`), may("name", `"`)},
	"developer": {must("role", `"`), must("content", `"[`), may("name", `"`)},
	"user":      {must("role", `"`), must("content", `"[`), may("name", `"`)},
	"assistant": {must("role", `"`), may("content", `"[n`), may("tool_calls", `[`), may("refusal", `"n`), may("name", `"`)},
	"tool":      {must("role", `"`), must("content", `"[`), must("tool_call_id", `"`)},
}

// chatParts are the parts of a message's content by type, with the roles that may have them.
var chatParts = map[string]piece{
	"text":      {shape{must("type", `"`), must("text", `"`)}, "system developer user assistant tool"},
	"refusal":   {shape{must("type", `"`), must("refusal", `"`)}, "assistant"},
	"image_url": {shape{must("type", `"`), must("image_url", `{`)}, "user"},
	"file":      {shape{must("type", `"`), must("file", `{`)}, "user"},
}

var (
	chatImage = shape{must("url", `"`), may("detail", `"`)}
	chatFile  = shape{may("file_data", `"`), may("file_id", `"`), may("filename", `"`)}
)

// chat checks a body of Chat Completions.
func (c *checker) chat(root *node) {
	if !c.fits(root, chatBody) {
		return
	}
	c.named(root, "model")
	long, old := root.get("max_completion_tokens"), root.get("max_tokens")
	c.positive(long, MaxTokens)
	c.positive(old, MaxTokens)
	c.demand(long == nil || old == nil, MaxTokens, root)
	c.between(root.get("temperature"), Sampling, 0, 2)
	c.between(root.get("top_p"), Sampling, 0, 1)
	c.stops(root.get("stop"), 4)
	if o := root.get("stream_options"); o.is(isObject) {
		c.demand(root.truth("stream"), FieldValue, o)
		c.fits(o, chatStreaming)
	}
	if n := root.get("metadata"); n != nil {
		c.notes(n, 16, 64, 512)
		c.demand(root.truth("store"), Storing, n)
	}
	m := &chatMessages{checker: c, calls: newPairing(c, shortID)}
	m.read(root.get("messages"))
	c.chatTools(root)
}

func (c *checker) chatTools(root *node) {
	tools := newOffered(toolName)
	list := root.get("tools")
	if list != nil {
		c.demand(len(list.items) > 0 && len(list.items) <= 128, FieldValue, list)
	}
	for _, t := range root.list("tools") {
		if !c.fits(t, chatTool) {
			continue
		}
		c.oneOf(t, "type", FieldValue, "function")
		if f := t.get("function"); c.fits(f, chatFunction) {
			tools.add(c, f.get("name"), f.get("parameters"))
		}
	}
	choice := root.get("tool_choice")
	tools.choice(c, choice)
	if choice.is(isText) {
		c.oneOf(root, "tool_choice", FieldValue, "none", "auto", "required")
	}
	if choice.is(isObject) && c.fits(choice, chatTool) && c.fits(choice.get("function"), chatNamed) {
		c.oneOf(choice, "type", FieldValue, "function")
		tools.chosen(c, choice.get("function").get("name"))
	}
}

// chatMessages reads the messages of a body.
type chatMessages struct {
	*checker
	calls *pairing
	// role is that of the newest message; empty before the first. The system's counts as none.
	role string
}

func (m *chatMessages) read(list *node) {
	m.demand(len(list.items) > 0, ContentEmpty, list)
	for i, item := range list.items {
		role := item.str("role")
		s, ok := chatRoles[role]
		if !m.demand(ok, RoleUnknown, item) || !m.fits(item, s) {
			continue
		}
		m.order(i, item, role)
		m.message(item, role)
	}
	m.calls.close()
	if m.role != "user" && m.role != "tool" && len(list.items) > 0 {
		m.say(LastNotUser, list)
	}
}

// order checks that a message may come after the one before it: user and assistant take turns, results stand between.
func (m *chatMessages) order(i int, item *node, role string) {
	switch role {
	case "system", "developer":
		m.demand(i == 0, SystemPlace, item)
		return
	case "tool":
		m.demand(m.role == "assistant" || m.role == "tool", ResultOrder, item)
	case "user":
		m.calls.close()
		m.demand(m.role != "user", RoleOrder, item)
	case "assistant":
		m.calls.close()
		m.demand(m.role != "", FirstNotUser, item)
		m.demand(m.role != "assistant", RoleOrder, item)
	}
	m.role = role
}

func (m *chatMessages) message(item *node, role string) {
	content, calls := item.get("content"), item.get("tool_calls")
	switch role {
	case "tool":
		m.calls.result(item.get("tool_call_id"))
		m.parts(content, role)
		return
	case "assistant":
		m.said(item, content, calls)
		return
	case "system", "developer":
		if content.is(isText) {
			m.demand(!blank(content.text), SystemBlank, content)
			return
		}
	}
	m.demand(!content.is(isText) || !blank(content.text), TextBlank, content)
	m.parts(content, role)
}

// said checks a message of the assistant: it has words, or calls, or both.
func (m *chatMessages) said(item, content, calls *node) {
	speaks := content != nil && !content.is(isNull) || item.get("refusal").is(isText)
	m.demand(speaks || calls != nil, ContentEmpty, item)
	if content.is(isText) {
		m.demand(!blank(content.text), TextBlank, content)
	}
	m.parts(content, "assistant")
	if calls == nil {
		return
	}
	m.demand(len(calls.items) > 0, ContentEmpty, calls)
	for _, one := range calls.items {
		if !m.fits(one, chatCall) || !m.fits(one.get("function"), chatCalled) {
			continue
		}
		m.oneOf(one, "type", FieldValue, "function")
		f := one.get("function")
		m.calls.call(one, one.get("id"), f.get("name"))
		m.arguments(f.get("arguments"))
	}
}

// parts checks content in the form of a list.
func (m *chatMessages) parts(content *node, role string) {
	if !content.is(isArray) {
		return
	}
	m.demand(len(content.items) > 0, ContentEmpty, content)
	for _, p := range content.items {
		if m.piece(p, chatParts, role) {
			m.part(p)
		}
	}
}

func (m *chatMessages) part(p *node) {
	switch p.str("type") {
	case "text":
		m.demand(!blank(p.str("text")), TextBlank, p)
	case "image_url":
		if image := p.get("image_url"); m.fits(image, chatImage) {
			m.oneOf(image, "detail", FieldValue, "auto", "low", "high")
			m.imageURL(image.get("url"))
		}
	case "file":
		f := p.get("file")
		if !m.fits(f, chatFile) {
			return
		}
		data := f.get("file_data")
		m.demand((data != nil) != (f.get("file_id") != nil), FieldValue, f)
		if data != nil {
			m.demand(dataURL.MatchString(data.text), MediaData, data)
			m.inlineURL(data, documentTypes, maxDocument)
		}
	}
}
