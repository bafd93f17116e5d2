package arrays

import (
	"fmt"
	"strconv"
	"strings"
)

// valueKind is a type of JSON value.
type valueKind byte

// The types, as letters that stand in the tables of fields.
const (
	isObject valueKind = '{'
	isArray  valueKind = '['
	isText   valueKind = '"'
	isNumber valueKind = '0'
	isBool   valueKind = 't'
	isNull   valueKind = 'n'
)

// node is a value of a body, with the place where it stands.
type node struct {
	kind valueKind
	// name is the field's, of an object; index the place in an array, else -1.
	name   string
	index  int
	parent *node
	// text is that of a string, or the literal of a number or word.
	text  string
	items []*node
}

// path is where a node stands, such as "messages[2].content".
func (n *node) path() string {
	if n.parent == nil {
		return "body"
	}
	above := ""
	if n.parent.parent != nil {
		above = n.parent.path()
	}
	if n.index >= 0 {
		return fmt.Sprintf("%s[%d]", above, n.index)
	}
	return strings.TrimPrefix(above+"."+safeName(n.name), ".")
}

// safeName is a field's name as a report may show it: a body's own keys can be somebody's words.
func safeName(name string) string {
	if len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
		return "*"
	}
	return name
}

// get is a field of an object, nil if it is not there.
func (n *node) get(name string) *node {
	if n == nil || n.kind != isObject {
		return nil
	}
	for _, item := range n.items {
		if item.name == name {
			return item
		}
	}
	return nil
}

// str is the text of a field, empty if it is no string.
func (n *node) str(name string) string {
	if item := n.get(name); item.is(isText) {
		return item.text
	}
	return ""
}

// truth is a field that is true.
func (n *node) truth(name string) bool {
	item := n.get(name)
	return item.is(isBool) && item.text == "true"
}

// list are the elements of a field that is an array.
func (n *node) list(name string) []*node {
	if item := n.get(name); item.is(isArray) {
		return item.items
	}
	return nil
}

func (n *node) is(kind valueKind) bool { return n != nil && n.kind == kind }

// number is a number's value.
func (n *node) number() (float64, bool) {
	if !n.is(isNumber) {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	return f, err == nil
}

// whole is the value of a number that is whole.
func (n *node) whole() (int64, bool) {
	if !n.is(isNumber) {
		return 0, false
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	return i, err == nil
}

// field is one that an object may have.
type field struct {
	name string
	// kinds are the letters of the types that its value may have.
	kinds string
	must  bool
}

// shape are the fields of an object; no others may stand there.
type shape []field

// must and may make the fields of a shape.
func must(name, kinds string) field { return field{name, kinds, true} }
func may(name, kinds string) field  { return field{name, kinds, false} }

// fits checks an object against its shape. It is false where the rest can't be read because of it.
func (c *checker) fits(n *node, s shape) bool {
	if !n.is(isObject) {
		c.say(FieldType, n)
		return false
	}
	for _, item := range n.items {
		if s.find(item.name) == nil {
			c.say(FieldUnknown, item)
		}
	}
	whole := true
	for i := range s {
		f := &s[i]
		item := n.get(f.name)
		switch {
		case item == nil && f.must:
			c.say(FieldMissing, n)
			whole = false
		case item != nil && strings.IndexByte(f.kinds, byte(item.kind)) < 0:
			c.say(FieldType, item)
			whole = false
		}
	}
	return whole
}

func (s shape) find(name string) *field {
	for i := range s {
		if s[i].name == name {
			return &s[i]
		}
	}
	return nil
}

// oneOf demands of a field that is there one of some words.
func (c *checker) oneOf(n *node, name string, kind Kind, words ...string) bool {
	item := n.get(name)
	if item == nil {
		return true
	}
	for _, w := range words {
		if item.is(isText) && item.text == w {
			return true
		}
	}
	c.say(kind, item)
	return false
}
