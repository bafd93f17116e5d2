package openai

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Bounds of what is held back of one reply's calls. A stream beyond them is taken as broken.
const (
	maxCalls = 256
	maxHeld  = 8 << 20
)

// callDelta is a part of a tool call. The first of a call has its id and name; all have its index, on the vendor's own
// servers at least.
type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string        `json:"name"`
		Arguments argumentsText `json:"arguments"`
	} `json:"function"`
}

// argumentsText is a string of JSON, or, as some servers have it, the JSON itself.
type argumentsText struct{ text wire.Text }

// UnmarshalJSON implements json.Unmarshaler.
func (t *argumentsText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && (data[0] == '{' || data[0] == '[') {
		t.text = append(t.text[:0], data...)
		return nil
	}
	return t.text.UnmarshalJSON(data)
}

// calls puts the calls of one reply in a row. On the wire the parts of several calls may be mixed; in a log blocks follow
// one another. One call at a time is written as it comes. What comes of the others is held until that one is over: when its
// arguments are a whole JSON value and another call has begun, or at the end of all calls.
type calls struct {
	all  []*toolUse // by their first parts
	next int        // the one that is written, or is to be; those before are over
	held int        // bytes held back of all of them
}

// toolUse is a call on its way.
type toolUse struct {
	index   int
	id      string
	name    string
	held    []byte
	started bool
	shape   shape
}

// add takes a part of a call.
func (c *calls) add(out []turns.Delta, b *wire.Blocks, response string, d *callDelta) ([]turns.Delta, error) {
	at, err := c.find(d)
	if err != nil {
		return out, err
	}
	u := c.all[at]
	if u.name == "" {
		u.name = d.Function.Name
	}
	args := d.Function.Arguments.text
	switch {
	case at < c.next:
		if len(bytes.TrimSpace(args)) > 0 {
			return out, wire.ErrMalformed // more of a call that was whole
		}
	case at == c.next && u.started:
		u.shape.add(args)
		b.Add(args)
	default:
		if c.held += len(args); c.held > maxHeld {
			return out, wire.ErrMalformed
		}
		u.held = append(u.held, args...)
	}
	return c.advance(out, b, response), nil
}

// find is the place of the call that a part belongs to. Servers exist that leave out the index, or say 0 for every call,
// and tell calls apart by their ids alone.
func (c *calls) find(d *callDelta) (int, error) {
	for i := len(c.all) - 1; i >= 0; i-- {
		u := c.all[i]
		sameIndex := d.Index == nil || *d.Index == u.index
		if sameIndex && (d.ID == "" || d.ID == u.id || u.id == "") {
			if u.id == "" {
				u.id = d.ID
			}
			return i, nil
		}
	}
	if len(c.all) == maxCalls {
		return 0, wire.ErrMalformed
	}
	u := &toolUse{index: len(c.all), id: d.ID}
	if d.Index != nil {
		u.index = *d.Index
	}
	c.all = append(c.all, u)
	return len(c.all) - 1, nil
}

// advance writes as much as can be written by now.
func (c *calls) advance(out []turns.Delta, b *wire.Blocks, response string) []turns.Delta {
	for c.next < len(c.all) {
		u := c.all[c.next]
		if !u.started {
			if u.name == "" {
				return out // its name is still to come
			}
			out = c.start(out, b, response, u)
		}
		if c.next == len(c.all)-1 || !u.shape.whole {
			return out
		}
		out = b.End(out)
		c.next++
	}
	return out
}

// start begins a call's block with what was held of it. A call without an id gets one that is the same each time the
// stream is read.
func (c *calls) start(out []turns.Delta, b *wire.Blocks, response string, u *toolUse) []turns.Delta {
	fallback := fmt.Sprintf("call_%.12x", sha256.Sum256(fmt.Appendf(nil, "%d %s", c.next, response)))
	out = b.StartTool(out, u.id, fallback, u.name)
	b.Add(u.held)
	u.shape.add(u.held)
	c.held -= len(u.held)
	u.held, u.started = nil, true
	return out
}

// end writes all that is left: no call gains anything any more.
func (c *calls) end(out []turns.Delta, b *wire.Blocks, response string) []turns.Delta {
	for ; c.next < len(c.all); c.next++ {
		if u := c.all[c.next]; !u.started {
			out = c.start(out, b, response, u)
		}
		out = b.End(out)
	}
	return out
}

// shape follows JSON text as it comes, as far as to know when an object or a list is over.
type shape struct {
	depth    int
	inString bool
	escaped  bool
	whole    bool
}

func (s *shape) add(text []byte) {
	for _, c := range text {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString:
			s.escaped, s.inString = c == '\\', c != '"'
		case c == '"':
			s.inString = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
			s.whole = s.whole || s.depth == 0
		}
	}
}
