package wire

import (
	"bytes"
	"encoding/json"
)

// maxListed bounds what a text cites, in bytes. A longer list is given up: a part of it is not what the vendor wrote.
const maxListed = 384 << 10

// Listed gathers what a vendor writes beside a text, such as whom it cites, one by one and each as it came. The zero value
// is empty.
type Listed struct {
	each [][]byte
	size int
}

// Add takes one more. null is nothing.
func (l *Listed) Add(one json.RawMessage) {
	if len(one) == 0 || string(one) == "null" {
		return
	}
	if l.size += len(one) + 1; l.size <= maxListed {
		l.each = append(l.each, bytes.Clone(one))
	}
}

// AddAll takes the elements of a list; what is no list has none.
func (l *Listed) AddAll(list json.RawMessage) {
	if len(list) == 0 {
		return
	}
	var each []json.RawMessage
	_ = json.Unmarshal(list, &each)
	for _, one := range each {
		l.Add(one)
	}
}

// JSON is the list; empty for none, and for one that grew too long.
func (l *Listed) JSON() string {
	if len(l.each) == 0 || l.size > maxListed {
		return ""
	}
	return "[" + string(bytes.Join(l.each, []byte(","))) + "]"
}
