package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// lines reads a file line by line, none of them longer than MaxLine.
type lines struct {
	in     *bufio.Reader
	number int
	buffer []byte
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 64<<10)} }

// next is the next line without its end, which holds until the call after it; io.EOF after the last. A file that ends
// inside a line was cut off.
func (l *lines) next() (line []byte, err error) {
	l.number++
	l.buffer = l.buffer[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.buffer)+len(part) > MaxLine+1 {
			return nil, l.problem(fmt.Sprintf("is longer than %d bytes", MaxLine))
		}
		l.buffer = append(l.buffer, part...)
		switch {
		case err == nil:
			return l.whole(l.buffer[:len(l.buffer)-1])
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buffer) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, l.problem("is cut off: the file ends inside it")
		default:
			return nil, err
		}
	}
}

func (l *lines) whole(line []byte) ([]byte, error) {
	if !utf8.Valid(line) {
		return nil, l.problem("is not UTF-8")
	}
	return line, nil
}

func (l *lines) problem(text string) error { return &LineError{Line: l.number, Problem: text} }

// kind is the kind of a line.
func (l *lines) kind(line []byte) (string, error) {
	var k struct {
		Kind *string `json:"kind"`
	}
	if err := json.Unmarshal(line, &k); err != nil {
		return "", &LineError{Line: l.number, Field: fieldOf(err), Problem: problemOf(err)}
	}
	if k.Kind == nil {
		return "", &LineError{Line: l.number, Field: "kind", Problem: "is missing"}
	}
	return *k.Kind, nil
}

// problemOf is what is wrong with a line in words that quote nothing of it.
func problemOf(err error) string {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("is not a JSON object: byte %d is wrong", syntax.Offset)
	case errors.As(err, &typ):
		return "is not of type " + typ.Type.String()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "is not a whole JSON object"
	case fieldOf(err) != "":
		return "is a field that this build does not know"
	}
	return "holds a value that can't be read: an id must be a UUID, a time as in RFC 3339, bytes base64"
}

// fieldOf is the field that an error of the decoder names.
func fieldOf(err error) string {
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		// The names of embedded structs come before that of the field.
		return typ.Field[strings.LastIndexByte(typ.Field, '.')+1:]
	}
	_, quoted, found := strings.Cut(err.Error(), "unknown field ")
	if name := strings.Trim(quoted, `"`); found && len(name) <= 64 {
		return name
	}
	return ""
}
