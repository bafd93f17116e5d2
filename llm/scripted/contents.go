package scripted

import (
	"encoding/json"
	"strings"
)

// content is a block and what was said in it so far.
type content struct {
	block     Block
	said      *strings.Builder
	signature string
	cited     []json.RawMessage
}

// contents gathers pieces into blocks, for answers that are not streamed.
type contents []content

func (c *contents) add(p piece) {
	if p.kind == pieceOpen {
		*c = append(*c, content{block: p.block, said: new(strings.Builder)})
		return
	}
	last := &(*c)[len(*c)-1]
	switch p.kind {
	case pieceSignature:
		last.signature = p.text
	case pieceCite:
		last.cited = append(last.cited, json.RawMessage(p.text))
	default:
		last.said.WriteString(p.text)
	}
}

// text joins what the blocks of one kind said.
func (c contents) text(kind pieceKind) string {
	var all strings.Builder
	for _, one := range c {
		if one.block.kind() == kind {
			all.WriteString(one.said.String())
		}
	}
	return all.String()
}
