package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

const (
	// longWindow is the model's window in tokens: room for more than fifty turns of longText and their replies.
	longWindow = 1450
	longText   = "turn %d of a long conversation, said in words of no great weight"
	// leastWindow is how many turns each window that is looked at must hold.
	leastWindow = 40
	// longPeriods are how many times the window is watched filling up and being cut, and shortPeriods in a short run.
	longPeriods  = 3
	shortPeriods = 1
	// longRatio is how much more the last turns may cost than the fiftieth.
	longRatio = 1.1
	// longRows are the most rows that a turn of a window may take to be read: two of its own, each looked at when the way up is
	// found and when its content is fetched, and the conversation beside.
	longRows = 12
)

// long shows that a turn at the end of a very long conversation costs what its fiftieth did.
//
// A window fills from three quarters to full and is then cut, and each turn of such a period costs a little more than the one
// before it. So whole periods are compared, by their medians: those of a conversation of thousands of turns with those of one
// that has just had fifty. The two take turns on the same server, each first as often as the other, so what else the machine
// does meets both alike.
func long(l *lab) error {
	total, periods := 5000, longPeriods
	if l.short {
		total, periods = 200, shortPeriods
	}
	engines, err := l.engines("long")
	if err != nil {
		return err
	}
	var ratios []float64
	for _, e := range engines {
		old, young, err := l.playLong(e, total, periods)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		prefix := ""
		if e.name == "sqlite" {
			prefix = "sqlite_"
		} else if err := rowsOfLong(total, old, young); err != nil {
			return err
		}
		ratio := old.ms / young.ms
		ratios = append(ratios, ratio)
		figure(prefix+"ms_50th", fmt.Sprintf("%.2f", young.ms))
		figure(prefix+"ms_last", fmt.Sprintf("%.2f", old.ms))
		figure(prefix+"time_ratio", fmt.Sprintf("%.2f", ratio))
	}
	if worst := slices.Max(ratios); worst > longRatio && !l.short {
		return fmt.Errorf("the last turns take %.2f times as long as the fiftieth", worst)
	}
	return nil
}

// rowsOfLong prints and judges what does not hang on the machine.
func rowsOfLong(total int, old, young longCost) error {
	figure("turns", total)
	figure("window_turns", min(old.window, young.window))
	figure("rows_50th", young.rows)
	figure("rows_last", old.rows)
	figure("rows_ratio", fmt.Sprintf("%.2f", old.rows/young.rows))
	figure("request_bytes_ratio", fmt.Sprintf("%.2f", old.bytes/young.bytes))
	if most := max(old.rows, young.rows); most > longRows*float64(max(old.window, young.window)) {
		return fmt.Errorf("%.0f rows are read for a window, which are too many for the turns that it holds", most)
	}
	if ratio := old.rows / young.rows; ratio > longRatio {
		return fmt.Errorf("the last turns read %.2f times as many rows as the fiftieth", ratio)
	}
	return nil
}

// talk is one conversation and what was seen of its turns.
type talk struct {
	conversation string
	index        map[uuid.UUID]int // of a user turn, from 0
	turns        []talkTurn
}

// talkTurn is a turn: how long SubmitTurn took, how many rows its path took to read, where its window started and how large
// its request was.
type talkTurn struct {
	ms, rows, bytes float64
	start           int
	reply           uuid.UUID
}

// longCost is the median turn of whole periods; window is the least number of turns that a window held.
type longCost struct {
	ms, rows, bytes float64
	window          int
}

func newTalk() *talk { return &talk{conversation: uuid.NewString(), index: map[uuid.UUID]int{}} }

// playLong plays a conversation of so many turns and one of fifty, then both in turns.
func (l *lab) playLong(e engine, total, periods int) (old, young longCost, err error) {
	p, err := l.provider(object{"rules": []object{plain(4)}})
	if err != nil {
		return old, young, err
	}
	defer p.stop()
	models, err := l.write("long.yaml", fmt.Sprintf("version: 1\ndefault_model: demo\nendpoints:\n"+
		"  one: {wire: anthropic.messages, base_url: %q, limits: {window_tokens: %d, max_output_tokens: 100}}\n"+
		"models:\n  demo: {route: [{endpoint: one, model: demo}]}\n", p.url, longWindow))
	if err != nil {
		return old, young, err
	}
	s, err := l.serve(e, models)
	if err != nil {
		return old, young, err
	}
	defer s.stop()
	plans, err := newPathPlans(l.ctx, e)
	if err != nil {
		return old, young, err
	}
	defer plans.close()
	a, b := newTalk(), newTalk()
	watched := periods + 1 // the first and the last are watched in part
	if err := errors.Join(a.say(l.ctx, s, total-watched*leastWindow/2, nil), b.say(l.ctx, s, 50, nil)); err != nil {
		return old, young, err
	}
	from := len(a.turns)
	for first, second := a, b; len(a.turns) < total; first, second = second, first {
		if err := errors.Join(first.say(l.ctx, s, 1, plans), second.say(l.ctx, s, 1, plans)); err != nil {
			return old, young, err
		}
	}
	if err := errors.Join(a.readWindows(l.ctx, e), b.readWindows(l.ctx, e)); err != nil {
		return old, young, err
	}
	if old, err = a.cost(from, periods); err != nil {
		return old, young, fmt.Errorf("the long conversation: %w", err)
	}
	if young, err = b.cost(50, periods); err != nil {
		return old, young, fmt.Errorf("the young conversation: %w", err)
	}
	return old, young, nil
}

// say takes n turns, each to the end of its reply. With plans, the reading of each turn's path is looked at.
func (t *talk) say(ctx context.Context, s *service, n int, plans *pathPlans) error {
	for range n {
		id := uuid.New()
		in := textInput(t.conversation, id.String(), fmt.Sprintf(longText, 1000+len(t.turns)%1000), "demo")
		var seen talkTurn
		var err error
		if plans != nil {
			if seen.rows, err = plans.rows(ctx, t.turns[len(t.turns)-1].reply); err != nil {
				return err
			}
		}
		begun := time.Now()
		got, err := s.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
		if err != nil {
			return err
		}
		seen.ms = float64(time.Since(begun)) / float64(time.Millisecond)
		h := &listener{}
		if err := h.follow(ctx, s, t.conversation, got.GetReply().GetReplyId()); err != nil || !h.completed {
			return errors.Join(err, fmt.Errorf("turn %d: %s", len(t.turns), h.ending()))
		}
		if seen.reply, err = uuid.Parse(got.GetReply().GetReplyId()); err != nil {
			return err
		}
		t.index[id] = len(t.turns)
		t.turns = append(t.turns, seen)
	}
	return nil
}

// readWindows reads where the window of each turn started, and how large its request was.
func (t *talk) readWindows(ctx context.Context, e engine) error {
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT r.responds_to, r.window_start, k.request_bytes
		FROM turns r JOIN provider_calls k ON k.conversation_key = r.conversation_key AND k.reply_id = r.id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var turn, start uuid.UUID
		var bytes float64
		if err := rows.Scan(&turn, &start, &bytes); err != nil {
			return err
		}
		if i, mine := t.index[turn]; mine {
			t.turns[i].start, t.turns[i].bytes = t.index[start], bytes
		}
	}
	return rows.Err()
}

// cost is the median turn of the last whole periods from a turn on: a period begins with the turn whose window was cut.
func (t *talk) cost(from, periods int) (c longCost, err error) {
	var cuts []int
	for i := from + 1; i < len(t.turns); i++ {
		if t.turns[i].start != t.turns[i-1].start {
			cuts = append(cuts, i)
		}
	}
	if len(cuts) <= periods {
		return c, fmt.Errorf("its window was cut %d times in %d turns, which are too few", len(cuts), len(t.turns)-from)
	}
	whole := t.turns[cuts[len(cuts)-1-periods]:cuts[len(cuts)-1]]
	var ms, read, bytes []float64
	c.window = len(t.turns)
	for i, turn := range whole {
		ms, read, bytes = append(ms, turn.ms), append(read, turn.rows), append(bytes, turn.bytes)
		c.window = min(c.window, cuts[len(cuts)-1-periods]+i-turn.start)
	}
	if c.window < leastWindow {
		return c, fmt.Errorf("a window held %d turns, which are fewer than %d", c.window, leastWindow)
	}
	c.ms, c.rows, c.bytes = median(ms), median(read), median(bytes)
	return c, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// longLimit is what a worker reads of a path for a turn of the conversation's model.
func longLimit() turns.PathLimit {
	q := turns.Question{Route: turns.Route{Model: "demo", Limits: turns.Limits{WindowTokens: longWindow}}}
	return q.Limit()
}
