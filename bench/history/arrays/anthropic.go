package arrays

import (
	"math"
	"strings"
)

var (
	anthropicBody = shape{
		must("model", `"`), must("max_tokens", `0`), must("messages", `[`), may("system", `"[`), may("stop_sequences", `[`),
		may("stream", `t`), may("tools", `[`), may("tool_choice", `{`), may("thinking", `{`), may("metadata", `{`),
		may("temperature", `0`), may("top_p", `0`), may("top_k", `0`), may("service_tier", `"`),
	}
	anthropicMessage = shape{must("role", `"`), must("content", `"[`)}
	anthropicTool    = shape{must("name", `"`), may("description", `"`), must("input_schema", `{`), may("type", `"`), may("cache_control", `{`)}
	anthropicChoice  = shape{must("type", `"`), may("name", `"`), may("disable_parallel_tool_use", `t`)}
	anthropicBudget  = shape{must("type", `"`), may("budget_tokens", `0`), may("display", `"`)}
)

// anthropicBlocks are the blocks of each type, with the roles that may have them; an empty role is inside of a result.
var anthropicBlocks = map[string]piece{
	"text":              {shape{must("type", `"`), must("text", `"`), may("citations", `[n`), may("cache_control", `{`)}, "user assistant result"},
	"image":             {shape{must("type", `"`), must("source", `{`), may("cache_control", `{`)}, "user result"},
	"document":          {shape{must("type", `"`), must("source", `{`), may("title", `"n`), may("context", `"n`), may("citations", `{`), may("cache_control", `{`)}, "user result"},
	"tool_use":          {shape{must("type", `"`), must("id", `"`), must("name", `"`), must("input", `{[0"tn`), may("caller", `{`), may("cache_control", `{`)}, "assistant"},
	"tool_result":       {shape{must("type", `"`), must("tool_use_id", `"`), may("content", `"[`), may("is_error", `t`), may("cache_control", `{`)}, "user"},
	"thinking":          {shape{must("type", `"`), must("thinking", `"`), must("signature", `"`)}, "assistant"},
	"redacted_thinking": {shape{must("type", `"`), must("data", `"`)}, "assistant"},
}

// anthropicVendor are the types that the vendor makes for itself and takes back as they came. Their fields are its own.
var anthropicVendor = map[string]bool{
	"server_tool_use": true, "web_search_tool_result": true, "web_fetch_tool_result": true, "code_execution_tool_result": true,
	"bash_code_execution_tool_result": true, "text_editor_code_execution_tool_result": true, "mcp_tool_use": true,
	"mcp_tool_result": true, "container_upload": true, "compaction": true,
}

// anthropic checks a body of the Messages API.
func (c *checker) anthropic(root *node) {
	if !c.fits(root, anthropicBody) {
		return
	}
	c.named(root, "model")
	c.positive(root.get("max_tokens"), MaxTokens)
	for _, name := range []string{"temperature", "top_p", "top_k"} {
		if n := root.get(name); n != nil {
			c.say(Sampling, n)
		}
	}
	c.anthropicSystem(root.get("system"))
	c.stops(root.get("stop_sequences"), math.MaxInt)
	for _, item := range root.list("stop_sequences") {
		c.demand(!blank(item.text), StopSequences, item)
	}
	a := &anthropicMessages{checker: c, calls: newPairing(c, callID)}
	a.read(root.get("messages"))
	c.anthropicTools(root, a.called)
	a.thinking(root)
}

// anthropicSystem checks the channel of the system's text: it is left out, or says something.
func (c *checker) anthropicSystem(n *node) {
	switch {
	case n == nil:
	case n.is(isText):
		c.demand(!blank(n.text), SystemBlank, n)
	default:
		c.demand(len(n.items) > 0, SystemBlank, n)
		for _, item := range n.items {
			if c.fits(item, anthropicBlocks["text"].shape) {
				c.demand(item.str("type") == "text", BlockPlace, item)
				c.demand(!blank(item.str("text")), SystemBlank, item)
			}
		}
	}
}

// anthropicTools checks tools and the choice among them. called says that the history has calls, which need declarations.
func (c *checker) anthropicTools(root *node, called bool) {
	tools := newOffered(toolName)
	tools.addAll(c, root.list("tools"), anthropicTool, "custom", "input_schema")
	c.demand(!called || len(tools.names) > 0, ToolsMissing, root)
	choice := root.get("tool_choice")
	tools.choice(c, choice)
	if choice == nil || !c.fits(choice, anthropicChoice) {
		return
	}
	c.oneOf(choice, "type", FieldValue, "auto", "any", "tool", "none")
	name := choice.get("name")
	if c.demand((name != nil) == (choice.str("type") == "tool"), FieldValue, choice) && len(tools.names) > 0 {
		tools.chosen(c, name)
	}
}

// anthropicMessages reads the messages of a body.
type anthropicMessages struct {
	*checker
	calls  *pairing
	called bool
	last   *node // the newest message
	before *node // the one before it
}

func (a *anthropicMessages) read(list *node) {
	a.demand(len(list.items) > 0, ContentEmpty, list)
	a.demand(len(list.items) <= 100_000, TooMany, list)
	for _, m := range list.items {
		if !a.fits(m, anthropicMessage) {
			continue
		}
		if !a.oneOf(m, "role", RoleUnknown, "user", "assistant") {
			continue
		}
		role := m.str("role")
		switch {
		case a.last == nil:
			a.demand(role == "user", FirstNotUser, m)
		default:
			a.demand(role != a.last.str("role"), RoleOrder, m)
		}
		a.message(m, role)
		a.before, a.last = a.last, m
	}
	a.calls.close()
	if a.last != nil && a.last.str("role") != "user" {
		a.say(LastNotUser, a.last)
		a.trailing(a.last)
	}
}

// trailing checks the end of a last message of the assistant.
func (a *anthropicMessages) trailing(m *node) {
	text := m.get("content")
	if n := len(text.items); text.is(isArray) && n > 0 {
		text = text.items[n-1].get("text")
	}
	if text.is(isText) {
		a.demand(strings.TrimRight(text.text, " \t\r\n") == text.text, TrailingSpace, text)
	}
}

// message checks one message. Results come first in it, and belong to calls of the message before.
func (a *anthropicMessages) message(m *node, role string) {
	if role == "assistant" {
		a.calls.close()
	}
	content := m.get("content")
	a.blocks(content, role)
	if role == "user" {
		a.calls.close()
	}
	if n := len(content.items); n > 0 && isThinking(content.items[n-1]) {
		a.say(ReasoningAlone, content.items[n-1])
	}
}

// blocks checks the content of a message, or of a result.
func (a *anthropicMessages) blocks(content *node, role string) {
	if content.is(isText) {
		a.demand(!blank(content.text), TextBlank, content)
		return
	}
	a.demand(len(content.items) > 0, ContentEmpty, content)
	own := make(map[string]bool) // ids of calls that the vendor ran itself, and whether they are answered
	results := true              // only results so far
	for _, b := range content.items {
		kind := b.str("type")
		if anthropicVendor[kind] {
			a.demand(role == "assistant", BlockPlace, b)
			a.vendorBlock(b, kind, own)
			continue
		}
		if !a.piece(b, anthropicBlocks, role) {
			continue
		}
		if kind == "tool_result" {
			a.demand(results, ResultOrder, b)
		} else {
			results = false
		}
		a.block(b, kind)
	}
	for _, b := range content.items {
		if answered, ok := own[b.str("id")]; ok && !answered {
			a.say(VendorCall, b)
		}
	}
}

// vendorBlock pairs calls that the vendor ran itself with their results, which stand in the same message.
func (a *anthropicMessages) vendorBlock(b *node, kind string, own map[string]bool) {
	switch {
	case strings.HasSuffix(kind, "_tool_use"):
		own[b.str("id")] = false
	case strings.HasSuffix(kind, "_tool_result"):
		_, ok := own[b.str("tool_use_id")]
		a.demand(ok, VendorCall, b)
		own[b.str("tool_use_id")] = true
	}
}

// block checks what is particular to a type.
func (a *anthropicMessages) block(b *node, kind string) {
	switch kind {
	case "text":
		a.demand(!blank(b.str("text")), TextBlank, b)
	case "thinking":
		a.demand(b.str("signature") != "", ReasoningUnsigned, b)
	case "redacted_thinking":
		a.demand(b.str("data") != "", ReasoningUnsigned, b)
	case "tool_use":
		a.called = true
		a.calls.call(b, b.get("id"), b.get("name"))
		a.demand(b.get("input").is(isObject), CallInput, b)
	case "tool_result":
		a.called = true
		a.calls.result(b.get("tool_use_id"))
		content := b.get("content")
		if b.truth("is_error") {
			a.demand(content != nil && (len(content.items) > 0 || !blank(content.text)), ErrorEmpty, b)
		}
		if content.is(isArray) && len(content.items) > 0 {
			a.blocks(content, "result")
		}
	case "image":
		a.imageSource(b.get("source"))
	case "document":
		a.documentSource(b.get("source"))
	}
}

func isThinking(b *node) bool {
	kind := b.str("type")
	return kind == "thinking" || kind == "redacted_thinking"
}

// thinking checks the budget, and that the thoughts which led to calls are there while their results go back.
func (a *anthropicMessages) thinking(root *node) {
	t := root.get("thinking")
	if t == nil || !a.fits(t, anthropicBudget) {
		return
	}
	a.oneOf(t, "type", FieldValue, "enabled", "disabled", "adaptive")
	if t.str("type") != "enabled" {
		return
	}
	budget, ok := t.get("budget_tokens").whole()
	most, _ := root.get("max_tokens").whole()
	a.demand(ok && budget >= 1024 && budget < most, ThinkingBudget, t)
	if choice := root.get("tool_choice"); choice != nil {
		forced := choice.str("type") == "any" || choice.str("type") == "tool"
		a.demand(!forced, ChoiceThinking, choice)
	}
	if a.last == nil || a.before == nil {
		return
	}
	said, asked := a.before.list("content"), a.last.list("content")
	if len(said) > 0 && len(asked) > 0 && asked[0].str("type") == "tool_result" {
		a.demand(isThinking(said[0]), ReasoningMissing, a.before)
	}
}

// sources of images and documents, by type.
var anthropicSources = map[string]shape{
	"base64":  {must("type", `"`), must("media_type", `"`), must("data", `"`)},
	"url":     {must("type", `"`), must("url", `"`)},
	"file":    {must("type", `"`), must("file_id", `"`)},
	"text":    {must("type", `"`), must("media_type", `"`), must("data", `"`)},
	"content": {must("type", `"`), must("content", `"[`)},
}

func (a *anthropicMessages) imageSource(n *node) {
	kind := n.str("type")
	a.demand(kind != "text" && kind != "content", FieldValue, n)
	if a.source(n, kind) && kind == "base64" {
		a.imageType(n.get("media_type"))
		a.base64Of(n.get("data"), maxImage)
	}
}

func (a *anthropicMessages) documentSource(n *node) {
	kind := n.str("type")
	if !a.source(n, kind) {
		return
	}
	switch kind {
	case "base64":
		a.oneOf(n, "media_type", MediaType, "application/pdf")
		a.base64Of(n.get("data"), maxDocument)
	case "text":
		a.oneOf(n, "media_type", MediaType, "text/plain")
		a.demand(!blank(n.str("data")), MediaData, n)
	}
}

// source checks the fields of a source, and an address in it.
func (a *anthropicMessages) source(n *node, kind string) bool {
	s, ok := anthropicSources[kind]
	if !a.demand(ok, FieldValue, n) || !a.fits(n, s) {
		return false
	}
	a.address(n.get("url"))
	return true
}
