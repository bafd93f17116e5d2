package scripted

import "strconv"

// isPlain tells text that JSON has as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// plainText frames a delta of plain text, byte for byte as say does. Where a model needs no time these events are nearly all
// that the provider has to do, and a load on what is before it would measure the encoder instead. What is returned is valid until
// the next call.
func (v *anthropicVoice) plainText(p piece) []byte {
	b := v.plain[:0]
	b = append(b, "event: content_block_delta"...)
	b = append(b, v.lines...)
	b = append(b, `data: {"type":"content_block_delta","index":`...)
	b = strconv.AppendInt(b, int64(p.index), 10)
	b = append(b, `,"delta":{"type":"text_delta","text":"`...)
	b = append(b, p.text...)
	b = append(b, `"}}`...)
	b = append(b, v.lines...)
	b = append(b, v.lines...)
	v.plain = b
	return v.plain
}
