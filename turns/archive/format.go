package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/turnd/turnd/turns"
)

// Version is that of the format. A reader refuses every other one, and every field that it does not know, so that nothing is
// left out in silence.
const Version = 1

// MaxLine bounds a line in bytes: a reply or a turn with all that it holds.
const MaxLine = 64 << 20

// The kinds of lines, in the order in which they come.
const (
	kindHeader       = "turnd-archive" // the first line
	kindConversation = "conversation"  // begins a conversation
	kindDefaults     = "defaults"      // its versions of defaults, by number
	kindTurn         = "turn"          // its rows, by seq
	kindReply        = "reply"
	kindCall         = "call"     // its ledger, by id
	kindTakeover     = "takeover" // who had its replies, by reply and epoch
	kindRepeats      = "repeats"  // how often its turns came again, by turn and layer
	kindEnd          = "end"      // ends it, with the numbers of its lines
	kindTrailer      = "turnd-archive-end"
)

// The lines of an archive, each with its kind.
type (
	headerLine struct {
		Kind    string `json:"kind"`
		Version int    `json:"version"`
	}
	conversationLine struct {
		Kind string `json:"kind"`
		turns.ArchivedConversation
	}
	defaultsLine struct {
		Kind string `json:"kind"`
		turns.ArchivedDefaults
	}
	rowLine struct {
		Kind string `json:"kind"`
		turns.ArchivedRow
	}
	callLine struct {
		Kind string `json:"kind"`
		turns.ArchivedCall
	}
	takeoverLine struct {
		Kind string `json:"kind"`
		turns.ArchivedTakeover
	}
	repeatsLine struct {
		Kind string `json:"kind"`
		turns.ArchivedRepeats
	}
	endLine struct {
		Kind     string `json:"kind"`
		Defaults int    `json:"defaults"`
		Rows     int    `json:"rows"`
		Calls    int    `json:"calls"`
		// Takeovers and Repeats are absent where there are none.
		Takeovers int `json:"takeovers,omitzero"`
		Repeats   int `json:"repeats,omitzero"`
	}
	trailerLine struct {
		Kind          string `json:"kind"`
		Conversations int    `json:"conversations"`
	}
)

// add counts a record.
func (e *endLine) add(r turns.ArchivedRecord) {
	switch {
	case r.Row != nil:
		e.Rows++
	case r.Call != nil:
		e.Calls++
	case r.Takeover != nil:
		e.Takeovers++
	case r.Repeats != nil:
		e.Repeats++
	default:
		e.Defaults++
	}
}

// recordLine is a record as its line.
func recordLine(r turns.ArchivedRecord) any {
	switch {
	case r.Row != nil && r.Row.Role == turns.RoleUser:
		return rowLine{kindTurn, *r.Row}
	case r.Row != nil:
		return rowLine{kindReply, *r.Row}
	case r.Call != nil:
		return callLine{kindCall, *r.Call}
	case r.Takeover != nil:
		return takeoverLine{kindTakeover, *r.Takeover}
	case r.Repeats != nil:
		return repeatsLine{kindRepeats, *r.Repeats}
	}
	return defaultsLine{kindDefaults, *r.Defaults}
}

// writeLine writes a value as a line.
func writeLine(w io.Writer, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	if len(line) > MaxLine {
		return fmt.Errorf("a line of %d bytes is beyond the bound of %d, and no import would take it", len(line), MaxLine)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// LineError says what is wrong with a line of a file.
type LineError struct {
	Line int
	// Field is the field at fault, empty if it is the whole line.
	Field   string
	Problem string
	cause   error
}

// Error implements error.
func (e *LineError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Problem)
}

// Unwrap gives the cause.
func (e *LineError) Unwrap() error { return e.cause }

// readLine reads a line as a value that has all of its fields.
func readLine(number int, line []byte, value any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(value); err != nil {
		return &LineError{Line: number, Field: fieldOf(err), Problem: problemOf(err)}
	}
	if _, err := d.Token(); err != io.EOF {
		return &LineError{Line: number, Problem: "holds more than one JSON value"}
	}
	return nil
}
