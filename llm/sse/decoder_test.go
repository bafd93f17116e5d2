package sse_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/sse"
)

// event is an Event that outlives the decoder's buffer.
type event struct {
	Name, ID, Data string
	Retry          time.Duration
}

func readAll(r io.Reader, limit int) ([]event, error) {
	d := sse.NewDecoder(r, limit)
	var events []event
	for {
		e, err := d.Next()
		if err != nil {
			return events, err
		}
		events = append(events, event{e.Name, e.ID, string(e.Data), e.Retry})
	}
}

// readTogether is readAll by one who takes what was read already before the next read.
func readTogether(r io.Reader, limit int) (events []event, err error) {
	d := sse.NewDecoder(r, limit)
	for {
		e, err := d.Next()
		if err != nil {
			return events, err
		}
		for ok := true; ok; e, ok = d.Buffered() {
			events = append(events, event{e.Name, e.ID, string(e.Data), e.Retry})
		}
	}
}

// pieces gives a stream in reads of at most n bytes each.
type pieces struct {
	rest []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.n, len(p.rest), len(b))])
	p.rest = p.rest[n:]
	return n, nil
}

var streams = []struct {
	name   string
	stream string
	events []event
	end    error
}{
	{"one event", "data: a\n\n", []event{{Data: "a"}}, io.EOF},
	{"nothing", "", nil, io.EOF},
	{"only empty lines", "\n\r\n\r", nil, io.EOF},
	{"all fields", "event: ping\nid: 7\nretry: 1500\ndata: a\n\n", []event{{"ping", "7", "a", 1500 * time.Millisecond}}, io.EOF},
	{"CRLF", "event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []event{{Name: "e", Data: "a"}, {Data: "b"}}, io.EOF},
	{"CR", "event: e\rdata: a\r\rdata: b\r\r", []event{{Name: "e", Data: "a"}, {Data: "b"}}, io.EOF},
	{"line ends mixed", "data: a\r\ndata: b\rdata: c\n\r\n", []event{{Data: "a\nb\nc"}}, io.EOF},
	{"CR before a data line is no blank line", "data: a\r\ndata: b\r\n\r\n", []event{{Data: "a\nb"}}, io.EOF},
	{"data over lines", "data: a\ndata:\ndata: c\n\n", []event{{Data: "a\n\nc"}}, io.EOF},
	{"one space is dropped", "data:  a \n\n", []event{{Data: " a "}}, io.EOF},
	{"no space", "data:a\n\n", []event{{Data: "a"}}, io.EOF},
	{"field without colon", "data\n\n", []event{{}}, io.EOF},
	{"empty data", "data:\n\n", []event{{}}, io.EOF},
	{"colons in data", "data: a: b\n\n", []event{{Data: "a: b"}}, io.EOF},
	{"comments", ": hello\n:\n\ndata: a\n: between\n\n", []event{{Data: "a"}}, io.EOF},
	{"unknown fields", "datax: 1\nfoo\ndata: a\n\n", []event{{Data: "a"}}, io.EOF},
	{"an event without data is none", "event: e\n\ndata: a\n\n", []event{{Data: "a"}}, io.EOF},
	{"an id lasts", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []event{{ID: "1", Data: "a"}, {ID: "1", Data: "b"}, {Data: "c"}}, io.EOF},
	{"an id with NUL is ignored", "id: a\x00\ndata: a\n\n", []event{{Data: "a"}}, io.EOF},
	{"a bad retry is ignored", "retry: 1x\nretry: 99999999999999999999\ndata: a\n\n", []event{{Data: "a"}}, io.EOF},
	{"a huge retry is a day", "retry: 999999999999999\ndata: a\n\n", []event{{Data: "a", Retry: 24 * time.Hour}}, io.EOF},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []event{{Data: "a"}}, io.EOF},
	{"runes", "data: naïve 你好🦀 👩‍👩‍👧\n\n", []event{{Data: "naïve 你好🦀 👩‍👩‍👧"}}, io.EOF},
	{"cut in a field", "data: a\n\ndata: b", []event{{Data: "a"}}, io.ErrUnexpectedEOF},
	{"cut after a field", "data: a\n", nil, io.ErrUnexpectedEOF},
	{"cut after a name", "event: message_stop\n", nil, io.ErrUnexpectedEOF},
	{"cut in a comment", ": hel", nil, io.ErrUnexpectedEOF},
	{"cut after a comment", "data: a\n\n: hello\n", []event{{Data: "a"}}, io.EOF},
}

func TestAStreamMeansTheSameHoweverItIsCutIntoReads(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			for n := 1; n <= max(1, len(tt.stream)); n++ {
				events, err := readAll(&pieces{[]byte(tt.stream), n}, 0)
				require.Equal(t, tt.end, err, "reads of %d bytes", n)
				require.Empty(t, cmp.Diff(tt.events, events), "reads of %d bytes", n)
			}
			for cut := range len(tt.stream) {
				two := io.MultiReader(strings.NewReader(tt.stream[:cut]), strings.NewReader(tt.stream[cut:]))
				events, err := readAll(iotest.DataErrReader(two), 0)
				require.Equal(t, tt.end, err, "cut at %d", cut)
				require.Empty(t, cmp.Diff(tt.events, events), "cut at %d", cut)
			}
		})
	}
}

func TestEveryPrefixOfAnEventIsACutOne(t *testing.T) {
	whole := "event: e\r\ndata: {\"text\":\"🦀\"}\r\n\r"
	for n := 1; n < len(whole); n++ {
		events, err := readAll(strings.NewReader(whole[:n]), 0)
		require.Empty(t, events)
		require.Equal(t, io.ErrUnexpectedEOF, err, "%q", whole[:n])
	}
}

func TestAnEventIsGivenOutWithoutWaitingForMore(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		r, w := io.Pipe()
		d := sse.NewDecoder(r, 0)
		go func() { _, _ = io.WriteString(w, "data: a"+end+end) }()
		e, err := d.Next() // the writer stays open: a decoder that reads on would hang here
		require.NoError(t, err)
		require.Equal(t, "a", string(e.Data))
		require.NoError(t, w.Close())
		_, err = d.Next()
		require.Equal(t, io.EOF, err)
	}
}

func TestAnEventPastTheBoundIsATypedError(t *testing.T) {
	for name, stream := range map[string]string{
		"one line":       "data: " + strings.Repeat("x", 200) + "\n\n",
		"many lines":     strings.Repeat("data: 0123456789\n", 20) + "\n",
		"a comment":      ": " + strings.Repeat("x", 200) + "\n\n",
		"without an end": strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n < 130; n += 43 {
				_, err := readAll(&pieces{[]byte(stream), n}, 100)
				var tooLarge *sse.TooLargeError
				require.ErrorAs(t, err, &tooLarge)
				require.Equal(t, 100, tooLarge.Limit)
			}
		})
	}
	events, err := readAll(strings.NewReader("data: "+strings.Repeat("x", 94)+"\n\n"), 100)
	require.Equal(t, io.EOF, err)
	require.Len(t, events, 1, "an event of just the bound passes")
}

func TestTheReadersErrorComesThroughAndStays(t *testing.T) {
	broken := errors.New("broken")
	d := sse.NewDecoder(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 0)
	_, err := d.Next()
	require.NoError(t, err)
	for range 2 {
		_, err = d.Next()
		require.Equal(t, broken, err)
	}
	_, err = sse.NewDecoder(silent{}, 0).Next()
	require.Equal(t, io.ErrNoProgress, err)
}

// silent is a reader that never gives anything, nor an error.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func FuzzAStreamMeansTheSameByteByByte(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 256
		whole, wholeErr := readAll(bytes.NewReader(stream), limit)
		bytewise, bytewiseErr := readAll(iotest.OneByteReader(bytes.NewReader(stream)), limit)
		require.Equal(t, wholeErr, bytewiseErr)
		require.Empty(t, cmp.Diff(whole, bytewise))
		together, togetherErr := readTogether(bytes.NewReader(stream), limit)
		require.Equal(t, wholeErr, togetherErr)
		require.Empty(t, cmp.Diff(whole, together))
		for _, e := range whole {
			require.LessOrEqual(t, len(e.Data), limit)
		}
	})
}

func TestTheFuzzCorpusIsCommitted(t *testing.T) {
	files, err := filepath.Glob("testdata/fuzz/FuzzAStreamMeansTheSameByteByByte/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(data, []byte("go test fuzz v1\n")), f)
	}
}

func BenchmarkDecoder(b *testing.B) {
	const events = 500
	stream := strings.Repeat("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"+
		"\"delta\":{\"type\":\"text_delta\",\"text\":\"sixteen bytes xx\"}}\n\n", events)
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		d := sse.NewDecoder(strings.NewReader(stream), 0)
		n := 0
		for {
			if _, err := d.Next(); err != nil {
				break
			}
			n++
		}
		if n != events {
			b.Fatalf("read %d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
}

func TestEventsOfAllSizesMeanTheSameHoweverTheyCome(t *testing.T) {
	var stream strings.Builder
	var want []event
	for i, n := range []int{1, 500, 512, 4000, 20_000, 3, 4096, 100, 9000, 2, 2, 2} {
		data := strings.Repeat(string(rune('a'+i)), n)
		want = append(want, event{Data: data})
		stream.WriteString("data: " + data + "\r\n\r\n")
	}
	for _, n := range []int{1, 7, 511, 512, 513, 4095, 4096, 5000, 1 << 20} {
		got, err := readAll(&pieces{[]byte(stream.String()), n}, 0)
		require.Equal(t, io.EOF, err)
		require.Empty(t, cmp.Diff(want, got), "in reads of %d", n)
		got, err = readTogether(&pieces{[]byte(stream.String()), n}, 0)
		require.Equal(t, io.EOF, err)
		require.Empty(t, cmp.Diff(want, got), "in reads of %d", n)
	}
}
