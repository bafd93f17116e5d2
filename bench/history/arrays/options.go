package arrays

import "regexp"

// The forms of names and ids. A vendor that takes more is held to what all of them take.
var (
	callID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	shortID  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// declaredName is what may be declared to Gemini: it begins with a letter or an underscore.
	declaredName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)
	labelText    = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)
)

// offered are the tools of a request: their names, checked for form and for being unique.
type offered struct {
	form  *regexp.Regexp
	names map[string]bool
}

func newOffered(form *regexp.Regexp) *offered {
	return &offered{form, make(map[string]bool)}
}

// add takes a tool's declaration: its name's node, and that of its schema, which may be left out.
func (o *offered) add(c *checker, name, schema *node) {
	if name == nil {
		return // its lack is reported by the shape
	}
	if !o.form.MatchString(name.text) {
		c.say(ToolName, name)
	}
	if o.names[name.text] {
		c.say(ToolRepeated, name)
	}
	o.names[name.text] = true
	if schema != nil && !schema.is(isNull) {
		c.schema(schema)
	}
}

// addAll takes the declarations of a list that each are a tool by themselves, of one type and with its schema under a name.
func (o *offered) addAll(c *checker, list []*node, declared shape, kind, schema string) {
	for _, t := range list {
		if c.fits(t, declared) {
			c.oneOf(t, "type", FieldValue, kind)
			o.add(c, t.get("name"), t.get(schema))
		}
	}
}

// schema checks that the parameters of a tool are those of an object.
func (c *checker) schema(n *node) {
	if !c.demand(n.is(isObject), ToolSchema, n) {
		return
	}
	if kind := n.get("type"); kind != nil && kind.text != "object" {
		c.say(ToolSchema, kind)
	}
}

// chosen checks the name of a tool that must be called.
func (o *offered) chosen(c *checker, name *node) {
	if name != nil && !o.names[name.text] {
		c.say(ChoiceUnknown, name)
	}
}

// choice checks that there are tools to choose from.
func (o *offered) choice(c *checker, choice *node) {
	if choice != nil && len(o.names) == 0 {
		c.say(ChoiceNoTools, choice)
	}
}

// stops checks sequences to stop at: how many, and that each says something.
func (c *checker) stops(n *node, most int) {
	if n == nil {
		return
	}
	if n.is(isText) {
		c.demand(n.text != "", StopSequences, n)
		return
	}
	c.demand(len(n.items) > 0 && len(n.items) <= most, StopSequences, n)
	for _, item := range n.items {
		c.demand(item.is(isText) && item.text != "", StopSequences, item)
	}
}

// between checks a number that may be left out.
func (c *checker) between(n *node, kind Kind, low, high float64) {
	if n == nil || n.is(isNull) {
		return
	}
	f, ok := n.number()
	c.demand(ok && low <= f && f <= high, kind, n)
}

// positive checks a whole number of at least 1 that may be left out.
func (c *checker) positive(n *node, kind Kind) {
	if n == nil || n.is(isNull) {
		return
	}
	i, ok := n.whole()
	c.demand(ok && i >= 1 && i < 1<<31, kind, n)
}

// named checks a field that must hold a name, such as that of the model.
func (c *checker) named(n *node, name string) {
	if item := n.get(name); item != nil {
		c.demand(item.is(isText) && !blank(item.text), FieldValue, item)
	}
}

// notes checks what a vendor keeps beside a response: texts by name, not too many and not too long.
func (c *checker) notes(n *node, most, nameMost, valueMost int) {
	if n == nil {
		return
	}
	c.demand(len(n.items) > 0 && len(n.items) <= most, Metadata, n)
	for _, item := range n.items {
		fits := item.is(isText) && len(item.name) <= nameMost && len(item.text) <= valueMost
		c.demand(fits && item.name != "", Metadata, item)
	}
}
