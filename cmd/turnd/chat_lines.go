package main

import (
	"bufio"
	"io"
)

// maxLine bounds a line of a chat in bytes: it is what a turn may hold by default.
const maxLine = 4 << 20

// lineReader reads a line when it is asked for one. Reading from a terminal can't be called off: when the user leaves at
// the prompt, its goroutine stays in the read and ends with the process, or with the input.
type lineReader struct {
	want  chan struct{}
	lines chan lineRead
	asked bool      // a line was asked for and not taken
	kept  *lineRead // a line that came before its time
}

type lineRead struct {
	text string
	err  error
}

func readLines(in io.Reader) *lineReader {
	r := &lineReader{want: make(chan struct{}), lines: make(chan lineRead, 1)}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	go func() {
		for range r.want {
			read := lineRead{err: io.EOF}
			if scanner.Scan() {
				read = lineRead{text: scanner.Text()}
			} else if err := scanner.Err(); err != nil {
				read.err = err
			}
			r.lines <- read
		}
	}()
	return r
}

// next asks for a line unless that was done before, and says where it will come. Nil means that none is to come now. What
// is received there must be given to took.
func (r *lineReader) next() <-chan lineRead {
	if r == nil || r.kept != nil {
		return nil
	}
	if !r.asked {
		r.asked = true
		r.want <- struct{}{}
	}
	return r.lines
}

// took notes that a line was received; keep is set for one that is to be obeyed later.
func (r *lineReader) took(read lineRead, keep bool) {
	r.asked = false
	if keep {
		r.kept = &read
	}
}

// takeKept gives the line that was kept, if there is one.
func (r *lineReader) takeKept() (read lineRead, ok bool) {
	if r.kept == nil {
		return lineRead{}, false
	}
	read, r.kept = *r.kept, nil
	return read, true
}

// close lets the goroutine end once it is not reading.
func (r *lineReader) close() { close(r.want) }
