package arrays

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting. What is deeper is refused by any server.
const maxDepth = 10_000

// parser reads JSON by the letter of RFC 8259, and more strictly where servers differ: names are unique, text is valid
// UTF-8, no half of a surrogate pair stands alone and there is no NUL, not even as an escape.
type parser struct {
	c   *checker
	src string
	at  int
	// odd are the kinds found in the string that is being read, reported when its node is there.
	odd []Kind
}

// parse reads a body. It is nil, and the reason reported, if it is no JSON.
func (c *checker) parse(src string) *node {
	p := &parser{c: c, src: src}
	root := &node{index: -1}
	if !p.value(root, 0) {
		return nil
	}
	if p.space(); p.at < len(src) {
		c.say(JSONSyntax, root)
		return nil
	}
	return root
}

func (p *parser) space() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) next() byte {
	if p.at >= len(p.src) {
		return 0
	}
	return p.src[p.at]
}

// take moves past a byte if it comes next.
func (p *parser) take(b byte) bool {
	if p.next() != b || p.at >= len(p.src) {
		return false
	}
	p.at++
	return true
}

func (p *parser) fail(n *node) bool {
	p.c.say(JSONSyntax, n)
	return false
}

// value reads one value into a node; false ends the parse.
func (p *parser) value(n *node, depth int) bool {
	if depth > maxDepth {
		p.c.say(JSONDepth, n)
		return false
	}
	p.space()
	switch b := p.next(); {
	case b == '{':
		return p.object(n, depth)
	case b == '[':
		return p.array(n, depth)
	case b == '"':
		n.kind = isText
		text, ok := p.text()
		if !ok {
			return p.fail(n)
		}
		n.text = text
		p.report(n)
		return true
	case b == '-' || '0' <= b && b <= '9':
		n.kind = isNumber
		return p.number(n)
	}
	for word, kind := range words {
		if strings.HasPrefix(p.src[p.at:], word) {
			n.kind, n.text = kind, word
			p.at += len(word)
			return true
		}
	}
	return p.fail(n)
}

var words = map[string]valueKind{"true": isBool, "false": isBool, "null": isNull}

func (p *parser) object(n *node, depth int) bool {
	n.kind = isObject
	p.at++
	var seen map[string]bool // made where comparing all would be slow
	for p.space(); !p.take('}'); {
		if len(n.items) > 0 && !p.take(',') {
			return p.fail(n)
		}
		if p.space(); p.next() != '"' {
			return p.fail(n)
		}
		name, ok := p.text()
		if !ok {
			return p.fail(n)
		}
		item := &node{parent: n, name: name, index: -1}
		p.report(item)
		if len(n.items) == 16 {
			seen = namesOf(n)
		}
		if seen != nil && seen[name] || seen == nil && n.get(name) != nil {
			p.c.say(JSONDuplicateKey, item)
		}
		if seen != nil {
			seen[name] = true
		}
		if p.space(); !p.take(':') {
			return p.fail(n)
		}
		if !p.value(item, depth+1) {
			return false
		}
		n.items = append(n.items, item)
		p.space()
	}
	return true
}

func namesOf(n *node) map[string]bool {
	names := make(map[string]bool, 2*len(n.items))
	for _, item := range n.items {
		names[item.name] = true
	}
	return names
}

func (p *parser) array(n *node, depth int) bool {
	n.kind = isArray
	p.at++
	for p.space(); !p.take(']'); {
		if len(n.items) > 0 && !p.take(',') {
			return p.fail(n)
		}
		item := &node{parent: n, index: len(n.items)}
		if !p.value(item, depth+1) {
			return false
		}
		n.items = append(n.items, item)
		p.space()
	}
	return true
}

func (p *parser) number(n *node) bool {
	from := p.at
	p.take('-')
	if !p.take('0') && !p.digits() {
		return p.fail(n)
	}
	if p.take('.') && !p.digits() {
		return p.fail(n)
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if !p.digits() {
			return p.fail(n)
		}
	}
	n.text = p.src[from:p.at]
	return true
}

func (p *parser) digits() bool {
	from := p.at
	for '0' <= p.next() && p.next() <= '9' {
		p.at++
	}
	return p.at > from
}

// report says what was odd about the string that was read last.
func (p *parser) report(n *node) {
	for _, kind := range p.odd {
		p.c.say(kind, n)
	}
	p.odd = nil
}

// text reads a string; false is bad syntax.
func (p *parser) text() (string, bool) {
	p.at++
	from := p.at
	var built []byte // nil while the text stands in the source as it is
	for p.at < len(p.src) {
		b := p.src[p.at]
		switch {
		case b == '"':
			text := p.src[from:p.at]
			if built != nil {
				text = string(append(built, text...))
			}
			p.at++
			return p.checked(text), true
		case b < ' ':
			if b == 0 {
				p.odd = append(p.odd, JSONNUL)
			}
			return "", false
		case b == '\\':
			built = append(built, p.src[from:p.at]...)
			r, ok := p.escape()
			if !ok {
				return "", false
			}
			built = utf8.AppendRune(built, r)
			from = p.at
		default:
			p.at++
		}
	}
	return "", false
}

// checked notes what a text may not hold.
func (p *parser) checked(text string) string {
	if !utf8.ValidString(text) {
		p.odd = append(p.odd, JSONUTF8)
	}
	if strings.IndexByte(text, 0) >= 0 {
		p.odd = append(p.odd, JSONNUL)
	}
	return text
}

const escaped, plain = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// escape reads an escape. Half of a surrogate pair is noted, and stands for U+FFFD.
func (p *parser) escape() (rune, bool) {
	p.at++
	b := p.next()
	if i := strings.IndexByte(escaped, b); b != 0 && i >= 0 {
		p.at++
		return rune(plain[i]), true
	}
	r, ok := p.unit()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	back := p.at
	if p.take('\\') {
		if low, ok := p.unit(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, true
			}
		}
	}
	p.at = back
	p.odd = append(p.odd, JSONSurrogate)
	return utf8.RuneError, true
}

// unit reads the rest of a \u escape.
func (p *parser) unit() (r rune, ok bool) {
	if !p.take('u') || p.at+4 > len(p.src) {
		return 0, false
	}
	for _, b := range []byte(p.src[p.at : p.at+4]) {
		digit := strings.IndexByte("0123456789abcdef", b|0x20)
		if b < '0' || digit < 0 || b > '9' && b < 'A' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	p.at += 4
	return r, true
}
