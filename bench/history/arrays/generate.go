package arrays

var (
	generateBody = shape{
		may("model", `"`), must("contents", `[`), may("systemInstruction", `{`), may("tools", `[`), may("toolConfig", `{`),
		may("generationConfig", `{`), may("safetySettings", `[`), may("cachedContent", `"`), may("labels", `{`),
	}
	generateContent  = shape{must("role", `"`), must("parts", `[`)}
	generateSystem   = shape{may("role", `"`), must("parts", `[`)}
	generateToolSet  = shape{must("functionDeclarations", `[`)}
	generateFunction = shape{
		must("name", `"`), may("description", `"`), may("parameters", `{`), may("parametersJsonSchema", `{`), may("behavior", `"`),
	}
	generateToolConfig = shape{must("functionCallingConfig", `{`)}
	generateCalling    = shape{must("mode", `"`), may("allowedFunctionNames", `[`)}
	generateConfig     = shape{
		may("maxOutputTokens", `0`), may("temperature", `0`), may("topP", `0`), may("topK", `0`), may("stopSequences", `[`),
		may("thinkingConfig", `{`), may("candidateCount", `0`), may("seed", `0`), may("responseMimeType", `"`),
	}
	generateThinking = shape{may("includeThoughts", `t`), may("thinkingBudget", `0`), may("thinkingLevel", `"`)}
	generatePart     = shape{
		may("text", `"`), may("thought", `t`), may("thoughtSignature", `"`), may("functionCall", `{`), may("functionResponse", `{`),
		may("inlineData", `{`), may("fileData", `{`),
	}
	generateCall     = shape{may("id", `"`), must("name", `"`), must("args", `{[0"tn`)}
	generateResponse = shape{may("id", `"`), must("name", `"`), must("response", `{`), may("parts", `[`)}
	generateInline   = shape{must("mimeType", `"`), must("data", `"`), may("displayName", `"`)}
	generateFile     = shape{may("mimeType", `"`), must("fileUri", `"`), may("displayName", `"`)}
)

// generatePartKinds are the fields of a part of which each part has one.
var generatePartKinds = []string{"text", "functionCall", "functionResponse", "inlineData", "fileData"}

// generate checks a body of generateContent.
func (c *checker) generate(root *node) {
	if !c.fits(root, generateBody) {
		return
	}
	c.named(root, "model")
	if s := root.get("systemInstruction"); s != nil && c.fits(s, generateSystem) {
		parts := s.get("parts")
		c.demand(len(parts.items) > 0, SystemBlank, parts)
		for _, p := range parts.items {
			c.demand(p.is(isObject) && len(p.items) == 1 && !blank(p.str("text")), SystemBlank, p)
		}
	}
	c.generateTools(root)
	c.generateConfig(root.get("generationConfig"))
	(&generateContents{checker: c, calls: newPairing(c, callID)}).read(root.get("contents"))
}

func (c *checker) generateTools(root *node) {
	tools := newOffered(declaredName)
	for _, set := range root.list("tools") {
		if !c.fits(set, generateToolSet) {
			continue
		}
		for _, f := range set.list("functionDeclarations") {
			if c.fits(f, generateFunction) {
				tools.add(c, f.get("name"), f.get("parametersJsonSchema"))
			}
		}
	}
	config := root.get("toolConfig")
	tools.choice(c, config)
	if config == nil || !c.fits(config, generateToolConfig) || !c.fits(config.get("functionCallingConfig"), generateCalling) {
		return
	}
	calling := config.get("functionCallingConfig")
	c.oneOf(calling, "mode", FieldValue, "AUTO", "ANY", "NONE", "VALIDATED")
	if allowed := calling.get("allowedFunctionNames"); allowed != nil {
		c.demand(calling.str("mode") == "ANY" || calling.str("mode") == "VALIDATED", FieldValue, allowed)
		c.demand(len(allowed.items) > 0, FieldValue, allowed)
		for _, name := range allowed.items {
			tools.chosen(c, name)
		}
	}
}

func (c *checker) generateConfig(n *node) {
	if n == nil || !c.fits(n, generateConfig) {
		return
	}
	c.positive(n.get("maxOutputTokens"), MaxTokens)
	c.between(n.get("temperature"), Sampling, 0, 2)
	c.between(n.get("topP"), Sampling, 0, 1)
	c.stops(n.get("stopSequences"), 5)
	if t := n.get("thinkingConfig"); t != nil && c.fits(t, generateThinking) {
		c.between(t.get("thinkingBudget"), ThinkingBudget, -1, 1<<20)
	}
}

// generateContents reads the messages of a body.
type generateContents struct {
	*checker
	calls *pairing
	role  string
}

func (g *generateContents) read(list *node) {
	g.demand(len(list.items) > 0, ContentEmpty, list)
	for _, m := range list.items {
		if !g.fits(m, generateContent) || !g.oneOf(m, "role", RoleUnknown, "user", "model") {
			continue
		}
		role := m.str("role")
		if g.role == "" {
			g.demand(role == "user", FirstNotUser, m)
		}
		g.demand(role != g.role, RoleOrder, m)
		if role == "model" {
			g.calls.close()
		}
		g.parts(m.get("parts"), role)
		if role == "user" {
			g.calls.close()
		}
		g.role = role
	}
	g.calls.close()
	if len(list.items) > 0 {
		g.demand(g.role == "user", LastNotUser, list)
	}
}

// parts checks the parts of a message. Responses come first; the first call must be signed, with what its model signed it
// with or with the vendor's word for calls that none of its models made.
func (g *generateContents) parts(parts *node, role string) {
	g.demand(len(parts.items) > 0, ContentEmpty, parts)
	called, responses := false, true
	for _, p := range parts.items {
		if !g.fits(p, generatePart) || !g.oneKind(p) {
			continue
		}
		signed := p.get("thoughtSignature")
		if signed != nil {
			g.demand(role == "model", BlockPlace, signed)
			g.demand(signature(signed.text), ReasoningUnsigned, signed)
		}
		if call := p.get("functionCall"); call != nil {
			g.demand(called || signed != nil, ReasoningUnsigned, p)
			called = true
		}
		if p.get("functionResponse") == nil {
			responses = false
		} else {
			g.demand(responses, ResultOrder, p)
		}
		g.part(p, role, signed != nil)
	}
}

func (g *generateContents) oneKind(p *node) bool {
	kinds := 0
	for _, name := range generatePartKinds {
		if p.get(name) != nil {
			kinds++
		}
	}
	return g.demand(kinds == 1, BlockUnknown, p)
}

func (g *generateContents) part(p *node, role string, signed bool) {
	if text := p.get("text"); text != nil {
		g.demand(signed && text.text == "" || !blank(text.text), TextBlank, text)
	}
	if n := p.get("functionCall"); n != nil && g.fits(n, generateCall) {
		g.demand(role == "model", BlockPlace, n)
		g.demand(n.get("id") != nil, CallID, n)
		g.calls.call(n, n.get("id"), n.get("name"))
		g.demand(n.get("args").is(isObject), CallInput, n)
	}
	if n := p.get("functionResponse"); n != nil && g.fits(n, generateResponse) {
		g.demand(role == "user", BlockPlace, n)
		g.response(n)
	}
	if n := p.get("inlineData"); n != nil && g.fits(n, generateInline) {
		g.inline(n)
	}
	if n := p.get("fileData"); n != nil && g.fits(n, generateFile) {
		g.demand(n.str("fileUri") != "", MediaData, n)
	}
}

func (g *generateContents) response(n *node) {
	g.demand(n.get("id") != nil, CallID, n)
	if call := g.calls.result(n.get("id")); call != nil {
		g.demand(call.name == n.str("name"), ResultName, n)
	}
	for _, p := range n.list("parts") {
		inline := p.get("inlineData")
		if g.demand(len(p.items) == 1 && geminiImages[inline.str("mimeType")], BlockPlace, p) {
			g.inline(inline)
		}
	}
	response := n.get("response")
	g.demand(len(response.items) > 0, ContentEmpty, response)
	if failed := response.get("error"); failed.is(isText) {
		g.demand(!blank(failed.text), ErrorEmpty, failed)
	}
}

func (g *generateContents) inline(n *node) {
	kind := n.str("mimeType")
	g.demand(geminiImages[kind] || documentTypes[kind], MediaType, n)
	most := maxDocument
	if geminiImages[kind] {
		most = maxImage
	}
	g.base64Of(n.get("data"), most)
}
