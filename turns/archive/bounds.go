package archive

import (
	"errors"
	"strings"

	"github.com/turnd/turnd/turns"
)

// Bounds of what a conversation can hold, so that what is imported has room to go on. They are those of the wire where it has
// some.
const (
	maxTitle  = 512         // characters
	maxName   = 128         // bytes of a tenant's or subject's name
	hashSize  = 34          // bytes: the name of the encoding and a digest
	maxInLine = 1_000       // turns in line
	maxCount  = 1<<31 - 1e6 // generations, attempts, versions of defaults
	maxNumber = 1 << 53     // places, versions and epochs
)

const (
	nameRule   = "must be 1 to 128 printable ASCII characters"
	countRule  = "must be at least 1, and leave room for a million more"
	numberRule = "is out of range: it must be at least 1 and at most 2^53"
)

// named reports whether a name is one that a caller can have.
func named(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
}

// wire takes what the rules of the wire say of a turn's content.
func wire(at *problems, err error) {
	var e *turns.Error
	if errors.As(err, &e) {
		at.demand(strings.TrimPrefix(e.Field, "input."), false, e.Problem)
	}
}
