package turns

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// bytesBuilder makes a body that says all of a prompt.
type bytesBuilder struct{ version int }

func (b bytesBuilder) Build(route Route, p Prompt) (Request, error) {
	body, err := json.Marshal(struct {
		Version int
		Prompt  Prompt
	}{b.version, p})
	return Request{Route: route, Body: body, Hash: sha256.Sum256(body), BuilderVersion: b.version}, err
}

func generated(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 2*(1+r.IntN(60)))
	for i := range data {
		data[i] = byte(r.UintN(256))
	}
	return data
}

// everyWindow tries window sizes from one token to more than all of a story, carried on and cut anew.
func everyWindow(t *testing.T, data []byte) (built, refused int) {
	for _, lived := range []int{0, 120, 400} {
		s := play(t, data, lived)
		whole := 40
		for _, row := range s.path {
			m, _ := messageOf(row)
			whole += int(EstimateContent(m.Content))
		}
		for _, content := range [][]Block{{Text{Text: "and now?"}}, s.answers(1)} {
			last := -1
			for limit := 1; limit < whole+50; limit += 1 + whole/60 {
				if s.tried(content, limit) {
					built++
				} else {
					refused++
				}
				last = s.anew(content, limit, last)
			}
		}
	}
	return built, refused
}

// tried builds the window of a size, if it can be, and demands of it what must hold.
func (s *story) tried(content []Block, limit int) bool {
	q := s.question(content, limit)
	w, err := buildWindow(q)
	if err != nil {
		require.Equal(s.t, CodePromptTooLarge, CodeOf(err))
		require.NotEmpty(s.t, err.(*Error).Meta)
		return false
	}
	s.holds(q, w)
	s.sameFromLess(q, w)
	return true
}

// anew builds the window of a size for a model that has said nothing yet. It holds no less than the last, smaller one.
func (s *story) anew(content []Block, limit, last int) int {
	q := s.question(content, limit)
	q.Route.Model = "a new model"
	w, err := buildWindow(q)
	if err != nil {
		require.Negative(s.t, last, "a larger window is never too small where a smaller one was not")
		return last
	}
	s.holds(q, w)
	require.GreaterOrEqual(s.t, len(w.prompt.Messages), last, "a larger window never holds less")
	return len(w.prompt.Messages)
}

// sameFromLess demands that a path that was read no further than a question needs gives the same window.
func (s *story) sameFromLess(q Question, w window) {
	s.t.Helper()
	if at := placeOf(q.Path, q.carriedStart()); at >= 0 {
		q.Path = q.Path[:at+1]
		again, err := buildWindow(q)
		require.NoError(s.t, err)
		require.Equal(s.t, w, again)
	}
	q.Pinned = w.start
	pinned, err := buildWindow(q)
	require.NoError(s.t, err)
	require.Equal(s.t, w.prompt, pinned.prompt, "an attempt again has the same prompt")
	require.Equal(s.t, w.start, pinned.start)
}

func TestEveryWindowOverEveryHistoryIsWhole(t *testing.T) {
	built, refused := 0, 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b, r := everyWindow(t, generated(seed))
			built, refused = built+b, refused+r
		})
	}
	require.Positive(t, refused)
	require.Greater(t, built, 1000)
}

func FuzzAWindowOverAHistoryIsWhole(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(generated(seed), uint16(60*seed), uint16(50*seed+20), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, lived, limit uint16, answers bool) {
		s := play(t, data, int(lived))
		content := []Block{Text{Text: "and now?"}}
		if answers {
			content = s.answers(len(data))
		}
		s.tried(content, int(limit))
		s.anew(content, int(limit)+1, s.anew(content, int(limit), -1))
	})
}

func TestTheSameQuestionGivesTheSameBytes(t *testing.T) {
	for seed := range uint64(20) {
		s := play(t, generated(seed), 300)
		q := s.question([]Block{Text{Text: "now"}}, 300)
		first, err := BuildRequest(bytesBuilder{1}, q)
		require.NoError(t, err)
		again, err := BuildRequest(bytesBuilder{1}, q)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.LessOrEqual(t, first.Tokens, int64(300))
	}
}

func TestAWindowStandsUntilItIsFullAndIsThenCutToThreeQuarters(t *testing.T) {
	s := &story{t: t, limit: 2000, model: "one"}
	starts, moved, last := 0, 0, RowID{}
	for range 200 {
		s.exchange([]Block{Text{Text: "some words of a question that a user asks"}}, Reply{Status: StatusComplete}, 0,
			piecesOf("and some more words of what the model has to say about it, as it is")...)
		start := s.path[0].Reply.WindowStart
		if start == last {
			continue
		}
		starts, last = starts+1, start
		if starts > 1 {
			w, err := buildWindow(s.question([]Block{Text{Text: "short"}}, 2000))
			require.NoError(t, err)
			require.LessOrEqual(t, w.tokens, int64(1700), "room was made for more than this turn")
			require.Greater(t, w.tokens, int64(1200), "and no more than had to be")
			moved++
		}
	}
	require.Greater(t, moved, 2)
	require.Less(t, moved, 30, "a window that moved with each turn would never be found in a cache")
}

func TestAWindowIsMeasuredByWhatTheModelCounted(t *testing.T) {
	s := &story{t: t, limit: 100_000, model: "one"}
	say := []Block{Text{Text: "twelve words or so that make one question, and no more than that"}}
	for range 10 {
		s.exchange(say, Reply{Status: StatusComplete}, 0, piecesOf("an answer of some words")...)
	}
	dear := slicesOf(s.path)
	for i := range dear { // a tokenizer that needs three times as many
		if r := dear[i].Reply; r != nil {
			more := *r
			more.Usage.Input, more.Usage.Output = 3*r.Usage.Input, 3*r.Usage.Output
			dear[i].Reply = &more
		}
	}
	q := s.question(say, 100_000)
	cheap, err := buildWindow(q)
	require.NoError(t, err)
	newest := s.path[0].Reply.Usage
	require.Equal(t, newest.Input+newest.Output-newest.Reasoning+EstimateContent(say), cheap.tokens, "what was counted, and the new turn")
	q.Path = dear
	w, err := buildWindow(q)
	require.NoError(t, err)
	require.Greater(t, w.tokens, 2*cheap.tokens)
	q.Route.Limits.WindowTokens = int(cheap.tokens) + 50
	cut, err := buildWindow(q)
	require.NoError(t, err)
	require.Less(t, len(cut.prompt.Messages), len(w.prompt.Messages)*2/3, "the same words take more room there")
	q.Route.ProviderModel = "another"
	whole, err := buildWindow(q)
	require.NoError(t, err)
	require.Len(t, whole.prompt.Messages, len(w.prompt.Messages), "what one model counted says nothing of another")
}

func slicesOf(path []PathRow) []PathRow { return append([]PathRow(nil), path...) }

func TestCountsThatCanNotBeAreNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(*Usage){
		"none":       func(u *Usage) { *u = Usage{Source: SourceReported, Calls: 1} },
		"below zero": func(u *Usage) { u.Input, u.Output = -5, -5 },
		"tiny":       func(u *Usage) { u.Input, u.Output = 1, 1 },
		"huge":       func(u *Usage) { u.Input = 1 << 62 },
		"estimated":  func(u *Usage) { u.Source = SourceEstimated },
		"of two":     func(u *Usage) { u.Calls = 2 },
	} {
		s := &story{t: t, limit: 100_000, model: "one"}
		for range 10 {
			s.exchange([]Block{Text{Text: "a question of some words"}}, Reply{Status: StatusComplete}, 0, piecesOf("an answer of some words")...)
		}
		estimate := int64(0)
		for _, row := range s.path {
			m, _ := messageOf(row)
			estimate += EstimateContent(m.Content)
			if row.Reply != nil {
				spoil(&row.Reply.Usage)
			}
		}
		q := s.question([]Block{Text{Text: "now"}}, 100_000)
		w, err := buildWindow(q)
		require.NoError(t, err)
		require.Equal(t, estimate+q.overhead(), w.tokens, name)
	}
}

func TestAToolLoopLargerThanThreeQuartersIsKeptWholeWhileItFits(t *testing.T) {
	path := toolsBelow(line(3), 6)
	q := asking(path, results("a6", "b6"), 0, RowID{})
	whole, err := buildWindow(q)
	require.NoError(t, err)
	q.Route.Limits.WindowTokens = int(whole.tokens)
	full, err := buildWindow(q)
	require.NoError(t, err)
	require.Len(t, full.prompt.Messages, len(whole.prompt.Messages))
	q.Route.Limits.WindowTokens--
	loop, err := buildWindow(q)
	require.NoError(t, err)
	require.Less(t, len(loop.prompt.Messages), len(whole.prompt.Messages))
	q.Route.Limits.WindowTokens = int(loop.tokens)
	again, err := buildWindow(q)
	require.NoError(t, err)
	require.Equal(t, loop.prompt, again.prompt, "the piece that can stand alone, though it is all that the window holds")
	q.Route.Limits.WindowTokens--
	_, err = buildWindow(q)
	require.Equal(t, CodePromptTooLarge, CodeOf(err))
	require.Equal(t, fmt.Sprint(loop.tokens), err.(*Error).Meta["tokens"])
	require.Equal(t, fmt.Sprint(loop.tokens-1), err.(*Error).Meta["limit"])
}

func TestAPathReadInPartIsCutBelowWhatWasRead(t *testing.T) {
	path := line(40)
	part := path[:40] // twenty turns of forty
	w := build(t, part, 0, RowID{})
	require.LessOrEqual(t, len(w.prompt.Messages), 31)
	require.GreaterOrEqual(t, len(w.prompt.Messages), 25)
}
