package scripted

import "strings"

// content is a block and what was said in it so far.
type content struct {
	block     Block
	said      *strings.Builder
	signature string
}

// contents gathers pieces into blocks, for answers that are not streamed.
type contents []content

func (c *contents) add(p piece) {
	if p.kind == pieceOpen {
		*c = append(*c, content{block: p.block, said: new(strings.Builder)})
		return
	}
	last := &(*c)[len(*c)-1]
	if p.kind == pieceSignature {
		last.signature = p.text
		return
	}
	last.said.WriteString(p.text)
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
