package wire

import (
	"encoding/json"
	"strings"
)

// Object is the input of a stored tool call as a JSON object: as the model wrote it, key order and all digits included, or
// {} if that was cut short or is no object.
func Object(input string) json.RawMessage {
	if v := Value(input); v[0] == '{' {
		return v
	}
	return json.RawMessage("{}")
}

// Value is the input of a stored tool call as any JSON: as the model wrote it, or {} if that was cut short. Strict readers
// take less than a model may write: halves of surrogate pairs and NUL, which they refuse even as escapes, become U+FFFD, and
// of fields of one name in one object the last stays.
func Value(input string) json.RawMessage {
	input = strings.TrimSpace(input)
	if !json.Valid([]byte(input)) {
		return json.RawMessage("{}")
	}
	return dropRepeated(mendEscapes([]byte(input)))
}

// mendEscapes replaces, in valid JSON, the escapes of NUL and of each half of a surrogate pair that stands alone.
func mendEscapes(data []byte) []byte {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		unit, ok := unitAt(data, i)
		switch next, paired := unitAt(data, i+6); {
		case !ok:
			i++ // the escaped character, which may be a backslash
		case unit != 0 && !isSurrogate(unit):
			i += 5
		case 0xD800 <= unit && unit < 0xDC00 && paired && 0xDC00 <= next && next <= 0xDFFF:
			i += 11
		default:
			copy(data[i:], `\ufffd`)
			i += 5
		}
	}
	return data
}

// unitAt reads the \u escape at a place, if there is one.
func unitAt(data []byte, at int) (rune, bool) {
	if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
		return 0, false
	}
	return hex4(data[at+2:])
}
