package scripted

import (
	"bytes"
	"net/http"
)

// sink writes a response body in the way that the plan wants.
type sink struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	mode WriteMode
	held bytes.Buffer // of WriteOnce
}

// write hands over bytes; with WriteOnce they are held until drain.
func (s *sink) write(b []byte) error {
	switch s.mode {
	case WriteOnce:
		s.held.Write(b)
		return nil
	case WriteByte:
		for i := range b {
			if err := s.push(b[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	default:
		return s.push(b)
	}
}

// drain writes what is held, and the headers if nothing was written yet.
func (s *sink) drain() error {
	defer s.held.Reset()
	return s.push(s.held.Bytes())
}

// push writes and flushes: only a write that reached the socket tells whether the client is there.
func (s *sink) push(b []byte) error {
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}
