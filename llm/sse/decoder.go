package sse

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// DefaultMaxEvent bounds an event where the caller names no bound: sealed reasoning and search results are events of
// some hundred kilobytes.
const DefaultMaxEvent = 4 << 20

const (
	// A stream of which little comes at a time, such as an idle one, keeps the small buffer; one that fills it gets the large
	// one for as long as it does. A larger event gets as large a one as it needs.
	smallBuffer = 512
	largeBuffer = 4 << 10
	// keptData is how much room for an event's data is kept from stream to stream.
	keptData   = 4 << 10
	knownNames = 64
	knownName  = 64 // bytes
	maxRetry   = 24 * time.Hour
)

// Event is one event of a stream.
type Event struct {
	// Name is the event's type; empty where the stream names none.
	Name string
	// ID is the last id the stream has given, of this event or of one before.
	ID string
	// Data holds the data lines joined by LF. It is valid until the next call of Next.
	Data []byte
	// Retry is the reconnection time this event asks for; zero if none.
	Retry time.Duration
}

// TooLargeError says that an event, or a single line, was larger than the bound.
type TooLargeError struct{ Limit int }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("sse: event larger than %d bytes", e.Limit)
}

// Decoder reads events from a stream. It is not safe for concurrent use.
type Decoder struct {
	r     io.Reader
	limit int
	err   error

	small      []byte
	buf        []byte // bytes read; from start on they are not yet taken
	filled     bool   // by the last read
	start, end int
	scanned    int // bytes after start known to hold no line end
	skipLF     bool
	begun      bool // the first line was seen, so no byte order mark is expected any more

	names   []string // few: a stream has not many, and mostly the same
	name    string
	id      string
	data    []byte
	hasData bool
	open    bool // a field of an event that is not given out yet was seen
	retry   time.Duration
	partial bool // lines of the next event were taken already
}

// NewDecoder reads from r. No event may take more than limit bytes; 0 means DefaultMaxEvent.
func NewDecoder(r io.Reader, limit int) *Decoder {
	d := new(Decoder)
	d.Reset(r, limit)
	return d
}

// Reset makes the decoder read another stream, as NewDecoder does; what it has allocated is used again. Room that a large
// event took is let go of.
func (d *Decoder) Reset(r io.Reader, limit int) {
	if limit <= 0 {
		limit = DefaultMaxEvent
	}
	small, data := d.small, d.data
	if size := min(smallBuffer, limit+1); len(small) != size {
		small = make([]byte, size)
	}
	if cap(data) > keptData {
		data = nil
	}
	d.shrink()
	if len(d.names) == knownNames {
		d.names = nil
	}
	*d = Decoder{r: r, limit: limit, small: small, buf: small, data: data[:0], names: d.names}
}

// Next is the next event that has data. At the end of the stream it is io.EOF between events and io.ErrUnexpectedEOF
// inside one; any other error is a TooLargeError or the reader's own. An error is final.
func (d *Decoder) Next() (Event, error) {
	for {
		if event, ok := d.Buffered(); ok {
			return event, nil
		}
		if err := d.Fill(); err != nil {
			return Event{}, err
		}
	}
}

// Fill reads at least one byte more, which may end an event or several. It is for who takes them by Buffered, and fails as Next
// does.
func (d *Decoder) Fill() error {
	if d.err != nil {
		return d.err
	}
	if err := d.fill(); err != nil {
		d.err = d.ending(err)
	}
	return d.err
}

// Buffered is Next for an event of which all was read already; false says that there is none, or that Next would fail. So it
// never waits, and a reader can take at once what came at once.
func (d *Decoder) Buffered() (Event, bool) {
	if d.err != nil {
		return Event{}, false
	}
	event, ok, err := d.next()
	d.err = err
	return event, ok && err == nil
}

// next takes lines that were read, up to the end of an event that has data; false says that there are not enough.
func (d *Decoder) next() (event Event, ok bool, err error) {
	if !d.partial {
		d.data, d.hasData, d.name, d.retry = d.data[:0], false, "", 0
	}
	d.partial = true
	for {
		line, ok, err := d.line()
		if err != nil || !ok {
			return Event{}, false, err
		}
		if len(line) > 0 {
			if err := d.field(line); err != nil {
				return Event{}, false, err
			}
			continue
		}
		d.open = false
		if d.hasData {
			d.partial = false
			return Event{Name: d.name, ID: d.id, Data: d.data, Retry: d.retry}, true, nil
		}
		d.name, d.retry = "", 0
	}
}

// line takes the next line without its end; false says that its end was not read yet. The result is valid until the next call.
func (d *Decoder) line() (line []byte, ok bool, err error) {
	if d.skipLF && d.start < d.end {
		d.skipLF = false
		if d.buf[d.start] == '\n' {
			d.start++
		}
	}
	pending := d.buf[d.start:d.end]
	if i := lineEnd(pending[d.scanned:]); i >= 0 {
		return d.take(pending, d.scanned+i), true, nil
	}
	d.scanned = len(pending)
	if d.scanned > d.limit {
		return nil, false, &TooLargeError{d.limit}
	}
	return nil, false, nil
}

// lineEnd is the index of the first CR or LF, or -1. Two searches for a byte are faster than one for either.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// take gives out the first n bytes of what is pending and steps over the line's end. A CR may be the first half of a CRLF
// whose LF has not come yet; that LF is skipped when it does.
func (d *Decoder) take(pending []byte, n int) []byte {
	line := pending[:n]
	d.skipLF = pending[n] == '\r'
	d.start += n + 1
	d.scanned = 0
	if !d.begun {
		d.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// fill reads at least one byte more.
func (d *Decoder) fill() error {
	if d.start > 0 {
		d.end = copy(d.buf, d.buf[d.start:d.end])
		d.start = 0
	}
	d.makeRoom()
	for range 100 {
		n, err := d.r.Read(d.buf[d.end:])
		d.end += n
		d.filled = d.end == len(d.buf)
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// largeBuffers are those that no stream needs now.
var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// makeRoom fits the buffer to what is read.
func (d *Decoder) makeRoom() {
	var grown []byte
	switch {
	case d.end == 0 && !d.filled:
		d.shrink()
		return
	case d.end < len(d.buf) && (!d.filled || len(d.buf) >= largeBuffer):
		return
	case len(d.buf) < largeBuffer && d.limit >= largeBuffer:
		grown = largeBuffers.Get().(*[largeBuffer]byte)[:]
	default:
		grown = make([]byte, min(2*len(d.buf), d.limit+1))
	}
	copy(grown, d.buf[:d.end])
	d.shrink()
	d.buf = grown
}

// shrink goes back to the small buffer.
func (d *Decoder) shrink() {
	if len(d.buf) == largeBuffer {
		largeBuffers.Put((*[largeBuffer]byte)(d.buf))
	}
	d.buf = d.small
}

// ending turns the reader's end into the stream's.
func (d *Decoder) ending(err error) error {
	if err == io.EOF && (d.open || d.end > d.start) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field acts on one line. A line without a colon is a field with an empty value; unknown fields are skipped.
func (d *Decoder) field(line []byte) error {
	key, value, _ := bytes.Cut(line, []byte(":"))
	if len(key) == 0 {
		return nil // a comment
	}
	d.open = true
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(key) {
	case "data":
		return d.addData(value)
	case "event":
		d.name = d.intern(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != d.id {
			d.id = string(value)
		}
	case "retry":
		d.setRetry(value)
	}
	return nil
}

func (d *Decoder) addData(value []byte) error {
	if len(d.data)+len(value)+1 > d.limit {
		return &TooLargeError{d.limit}
	}
	if d.hasData {
		d.data = append(d.data, '\n')
	}
	d.data = append(d.data, value...)
	d.hasData = true
	return nil
}

// intern keeps the few names a stream repeats, so that an event's name costs no allocation.
func (d *Decoder) intern(name []byte) string {
	for _, known := range d.names {
		if known == string(name) {
			return known
		}
	}
	s := string(name)
	if len(d.names) < knownNames && len(s) <= knownName {
		d.names = append(d.names, s)
	}
	return s
}

// setRetry takes digits alone, as the standard has it.
func (d *Decoder) setRetry(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return
	}
	d.retry = min(time.Duration(min(ms, int64(maxRetry/time.Millisecond)))*time.Millisecond, maxRetry)
}
