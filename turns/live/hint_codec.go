package live

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"

	"github.com/turnd/turnd/turns"
)

// hintVersion begins each message, so that workers of different builds drop what they don't know. The checksum at its end
// tells a message that was cut or mangled.
const (
	hintVersion = 2
	checksum    = 4
)

// Marks of an encoded hint.
const (
	markEnded = 1 << iota
	markStop
	markPieces
	markTime
)

var errHint = errors.New("not a message of hints")

// EncodeHints writes hints as messages of at most max bytes each. A hint that is too big for a message goes without its
// pieces.
func EncodeHints(hints []Hint, max int) ([][]byte, error) {
	var messages [][]byte
	message := []byte{hintVersion}
	for _, h := range hints {
		record, err := h.encode()
		if err != nil {
			return nil, err
		}
		if 1+len(record)+checksum > max {
			h.Pieces = nil
			if record, err = h.encode(); err != nil {
				return nil, err
			}
		}
		if len(message)+len(record)+checksum > max {
			messages = append(messages, sum(message))
			message = []byte{hintVersion}
		}
		message = append(message, record...)
	}
	if len(message) > 1 {
		messages = append(messages, sum(message))
	}
	return messages, nil
}

func sum(message []byte) []byte {
	return binary.BigEndian.AppendUint32(message, crc32.ChecksumIEEE(message))
}

func (h Hint) encode() ([]byte, error) {
	var marks byte
	if h.Ended {
		marks |= markEnded
	}
	if h.Stop {
		marks |= markStop
	}
	if len(h.Pieces) > 0 {
		marks |= markPieces
	}
	at := h.At.UnixMicro()
	if !h.At.IsZero() && at > 0 {
		marks |= markTime
	}
	record := append(h.Reply.UUID[:], marks)
	record = binary.AppendUvarint(record, uint64(h.Epoch))
	record = binary.AppendUvarint(record, uint64(h.Length))
	if marks&markTime != 0 {
		record = binary.AppendUvarint(record, uint64(at))
	}
	if len(h.Pieces) == 0 {
		return record, nil
	}
	pieces, err := turns.EncodePieces(h.Pieces)
	if err != nil {
		return nil, err
	}
	record = binary.AppendUvarint(record, uint64(h.From))
	record = binary.AppendUvarint(record, uint64(len(pieces)))
	return append(record, pieces...), nil
}

// DecodeHints reads a message of EncodeHints. Anything else is an error.
func DecodeHints(message []byte) ([]Hint, error) {
	body := len(message) - checksum
	if body < 1 || message[0] != hintVersion || binary.BigEndian.Uint32(message[body:]) != crc32.ChecksumIEEE(message[:body]) {
		return nil, errHint
	}
	r := hintReader{rest: message[1:body]}
	var hints []Hint
	for len(r.rest) > 0 && r.err == nil {
		hints = append(hints, r.hint())
	}
	return hints, r.err
}

// hintReader reads records until one is wrong.
type hintReader struct {
	rest []byte
	err  error
}

func (r *hintReader) hint() (h Hint) {
	copy(h.Reply.UUID[:], r.take(16))
	var marks byte
	if b := r.take(1); r.err == nil {
		marks = b[0]
	}
	h.Ended, h.Stop = marks&markEnded != 0, marks&markStop != 0
	h.Epoch, h.Length = int64(r.number()), uint32(r.number())
	if marks&markTime != 0 {
		h.At = time.UnixMicro(int64(r.number() & math.MaxInt64)).UTC()
	}
	if marks&markPieces == 0 {
		return h
	}
	h.From = uint32(r.number())
	pieces, err := turns.DecodePieces(r.take(int(min(r.number(), uint64(len(r.rest)+1)))))
	if r.err == nil {
		h.Pieces, r.err = pieces, err
	}
	return h
}

func (r *hintReader) take(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.err = nil, errHint
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *hintReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.err = nil, errHint
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
