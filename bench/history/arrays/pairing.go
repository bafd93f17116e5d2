package arrays

import "regexp"

// call is one that waits for its result.
type call struct {
	id, name string
	at       *node
	answered bool
}

// pairing follows calls and their results through a history. A result belongs to a call of the step just before it, and the
// ids of calls are unique throughout.
type pairing struct {
	c    *checker
	form *regexp.Regexp // of ids
	used map[string]bool
	open []call
}

func newPairing(c *checker, form *regexp.Regexp) *pairing {
	return &pairing{c: c, form: form, used: make(map[string]bool)}
}

// call takes a call by the nodes of its id and name.
func (p *pairing) call(at, id, name *node) {
	if id == nil || name == nil {
		return // its lack is reported by the shape
	}
	p.c.demand(p.form.MatchString(id.text), CallID, id)
	p.c.demand(toolName.MatchString(name.text), CallName, name)
	if p.used[id.text] {
		p.c.say(CallReused, id)
	}
	p.used[id.text] = true
	p.open = append(p.open, call{id: id.text, name: name.text, at: at})
}

// result takes a result by the id of its call, and says which call it was; nil is none.
func (p *pairing) result(id *node) *call {
	if id == nil {
		return nil
	}
	for i := range p.open {
		open := &p.open[i]
		if open.id != id.text {
			continue
		}
		if open.answered {
			p.c.say(ResultRepeated, id)
		}
		open.answered = true
		return open
	}
	p.c.say(ResultOrphan, id)
	return nil
}

// close ends the step in which results may come.
func (p *pairing) close() {
	for _, open := range p.open {
		p.c.demand(open.answered, CallUnanswered, open.at)
	}
	p.open = nil
}

// begun reports whether a call was answered in this step.
func (p *pairing) begun() bool {
	for _, open := range p.open {
		if open.answered {
			return true
		}
	}
	return false
}

// arguments checks the input of a call that is sent as text: it is JSON of its own. Names that come twice are the model's
// affair there.
func (c *checker) arguments(n *node) {
	if n == nil {
		return
	}
	inner := &checker{}
	inner.parse(n.text)
	for _, v := range inner.found {
		if v.Kind != JSONDuplicateKey {
			c.say(CallInput, n)
			return
		}
	}
}
