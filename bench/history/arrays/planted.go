package arrays

import (
	"fmt"
	"slices"
	"strings"
)

// Plant is an error planted into the valid body of a wire: one piece of its text gives way to another.
type Plant struct {
	Wire Wire
	// Name says what is wrong, Want is the kind that the validator must find, among others perhaps.
	Name string
	Want Kind
	// Old stands in the valid body once, and New is put there.
	Old, New string
}

// Body is the body with the error in it.
func (p Plant) Body() []byte {
	return []byte(strings.Replace(Valid(p.Wire), p.Old, p.New, 1))
}

// Missed says why a plant proves nothing, or that it was let through; empty if it was caught.
func (p Plant) Missed() string {
	valid := Valid(p.Wire)
	switch n := strings.Count(valid, p.Old); {
	case n != 1:
		return fmt.Sprintf("%s: %s: its text stands %d times in the valid body", p.Wire, p.Name, n)
	case len(Validate(p.Wire, []byte(valid))) > 0:
		return fmt.Sprintf("%s: the valid body is refused: %v", p.Wire, Validate(p.Wire, []byte(valid)))
	}
	found := Kinds(Validate(p.Wire, p.Body()))
	if !slices.Contains(found, p.Want) {
		return fmt.Sprintf("%s: %s: found %v and not %s", p.Wire, p.Name, found, p.Want)
	}
	return ""
}

// Valid is a body of a wire with nothing wrong, and with a little of everything in it.
func Valid(wire Wire) string { return valid[wire] }

// Plants are all planted errors.
func Plants() []Plant {
	var all []Plant
	for _, wire := range Wires {
		for _, p := range append(bytePlants(wire), plants[wire]...) {
			p.Wire = wire
			all = append(all, p)
		}
	}
	return all
}

// bytePlants are errors of the bytes, which all wires refuse. Each valid body has the word "first" and a model.
func bytePlants(wire Wire) []Plant {
	return []Plant{
		{Name: "a body that is cut", Want: JSONSyntax, Old: lastOf(Valid(wire)), New: ""},
		{Name: "a key that stands twice", Want: JSONDuplicateKey, Old: `{"model":`, New: `{"model":"m","model":`},
		{Name: "bytes that are no text", Want: JSONUTF8, Old: "first", New: "fi\xffst"},
		{Name: "half a rune", Want: JSONUTF8, Old: "first", New: "\xf0\x9f\x98"},
		{Name: "half a surrogate pair", Want: JSONSurrogate, Old: "first", New: `\ud83d!`},
		{Name: "the second half alone", Want: JSONSurrogate, Old: "first", New: `\ude00`},
		{Name: "NUL", Want: JSONNUL, Old: "first", New: `\u0000`},
		{Name: "a field that nobody knows", Want: FieldUnknown, Old: `{"model":`, New: `{"trace":1,"model":`},
		{Name: "a model without a name", Want: FieldValue, Old: `"model":"m"`, New: `"model":" "`},
	}
}

// lastOf is the end of a body, long enough to stand there once.
func lastOf(body string) string { return body[len(body)-12:] }

// pixel and paper are the smallest data of an image and of a document.
const (
	pixel = "iVBORw0KGgo="
	paper = "JVBERi0xLjQK"
)
