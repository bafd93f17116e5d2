package group_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/turns/group"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer is a group whose statements wait for a word of the test.
type writer struct {
	*group.Group[string, string, string]
	mu         sync.Mutex
	statements [][]string
	contexts   []context.Context
	ends       []chan error
	calls      sync.WaitGroup
}

func newWriter(config group.Config) *writer {
	w := &writer{}
	w.Group = group.New[string](config, func(ctx context.Context, items []string, answer func(int, string, error)) {
		end := make(chan error, 1)
		w.mu.Lock()
		w.statements, w.contexts, w.ends = append(w.statements, items), append(w.contexts, ctx), append(w.ends, end)
		w.mu.Unlock()
		var err error
		select {
		case err = <-end:
		case <-ctx.Done():
			err = ctx.Err()
		}
		for i, item := range items {
			answer(i, "did "+item, err)
		}
	})
	return w
}

// call is a caller and what it was told.
type call struct {
	done   chan struct{}
	result string
	err    error
}

// put has a caller bring an item of a tenant, which is its key up to a stroke.
func (w *writer) put(ctx context.Context, tenant, item string) *call {
	key, _, _ := cut(item)
	c := &call{done: make(chan struct{})}
	w.calls.Go(func() {
		defer close(c.done)
		c.result, c.err = w.Do(ctx, group.Place[string]{Tenant: tenant, Key: key, Size: len(item)}, item)
	})
	synctest.Wait()
	return c
}

func cut(item string) (key, rest string, found bool) {
	for i := range item {
		if item[i] == '/' {
			return item[:i], item[i+1:], true
		}
	}
	return item, "", false
}

// written are the statements so far.
func (w *writer) written() [][]string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.statements)
}

// end lets the n-th statement end.
func (w *writer) end(n int, err error) {
	synctest.Wait()
	w.ends[n] <- err
	synctest.Wait()
}

// finish lets all statements end and closes the group.
func (w *writer) finish() {
	for n := 0; ; n++ {
		synctest.Wait()
		if n == len(w.ends) {
			break
		}
		w.ends[n] <- nil
	}
	w.calls.Wait()
	w.Close()
}

func (c *call) answered() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

var some = group.Config{Writers: 1, Most: 4, Bytes: 1000, Waiting: 1000}

func TestACallerThatFindsAWriterFreeGoesAloneAndTheOthersGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		first := w.put(t.Context(), "t", "a")
		require.Equal(t, [][]string{{"a"}}, w.written(), "no time has passed")
		second, third := w.put(t.Context(), "t", "b"), w.put(t.Context(), "t", "c")
		require.Len(t, w.written(), 1)
		w.end(0, nil)
		require.True(t, first.answered())
		require.Equal(t, "did a", first.result)
		require.Equal(t, [][]string{{"a"}, {"b", "c"}}, w.written())
		require.False(t, second.answered())
		w.end(1, errors.New("no"))
		require.EqualError(t, second.err, "no")
		require.EqualError(t, third.err, "no")
		w.finish()
	})
}

func TestNoMoreStatementsRunAtOnceThanThereAreWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Writers = 2
		w := newWriter(config)
		for i := range 9 {
			w.put(t.Context(), "t", fmt.Sprint(i))
		}
		require.Equal(t, [][]string{{"0"}, {"1"}}, w.written())
		w.end(1, nil)
		require.Equal(t, []string{"2", "3", "4", "5"}, w.written()[2])
		w.end(0, nil)
		require.Equal(t, []string{"6", "7", "8"}, w.written()[3])
		w.finish()
		require.Len(t, w.written(), 4)
	})
}

func TestAStatementTakesNoMoreBytesThanItMayButOneItemAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Bytes = 5
		w := newWriter(config)
		for _, item := range []string{"a", "bb", "cc", "dd", "eeeeeeeee", "f"} {
			w.put(t.Context(), "t", item)
		}
		w.finish()
		require.Equal(t, [][]string{{"a"}, {"bb", "cc"}, {"dd"}, {"eeeeeeeee"}, {"f"}}, w.written())
	})
}

func TestItemsOfOneKeyAreWrittenOneAfterTheOtherAsTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Writers = 2
		w := newWriter(config)
		for _, item := range []string{"a/1", "a/2", "a/3", "b/1", "c/1", "b/2"} {
			w.put(t.Context(), "t", item)
		}
		require.Equal(t, [][]string{{"a/1"}, {"b/1"}}, w.written(), "the second writer passes over what must wait")
		w.end(1, nil)
		require.Equal(t, []string{"c/1", "b/2"}, w.written()[2])
		w.end(0, nil)
		require.Equal(t, []string{"a/2"}, w.written()[3])
		w.finish()
		require.Equal(t, [][]string{{"a/3"}}, w.written()[4:])
	})
}

func TestTenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		for i := range 500 {
			w.put(t.Context(), "hot", fmt.Sprint(i))
		}
		cold := w.put(t.Context(), "cold", "mine")
		w.end(0, nil)
		require.Contains(t, w.written()[1], "mine", "the next statement has it")
		w.end(1, nil)
		require.True(t, cold.answered())
		for i := range 3 {
			w.put(t.Context(), fmt.Sprint("tenant", i), fmt.Sprint("of", i))
		}
		w.end(2, nil)
		for i := range 3 {
			require.Contains(t, w.written()[3], fmt.Sprint("of", i))
		}
		w.finish()
	})
}

func TestAnAnswerIsGivenBeforeTheOthersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, rest := make(chan struct{}), make(chan struct{})
		g := group.New[string](some, func(_ context.Context, items []string, answer func(int, int, error)) {
			if len(items) == 1 {
				<-first
			} else {
				answer(1, 2, nil)
				answer(1, 3, errors.New("once is enough"))
				<-rest
			}
		})
		var calls sync.WaitGroup
		results, errs := make([]int, 3), make([]error, 3)
		for i, key := range []string{"a", "b", "c"} {
			calls.Go(func() { results[i], errs[i] = g.Do(t.Context(), group.Place[string]{Key: key}, key) })
			synctest.Wait()
		}
		close(first)
		synctest.Wait()
		require.Equal(t, []int{0, 0, 2}, results)
		require.NoError(t, errs[2])
		require.NoError(t, errs[1], "not answered yet")
		close(rest)
		calls.Wait()
		require.ErrorContains(t, errs[0], "no answer")
		require.ErrorContains(t, errs[1], "no answer")
		g.Close()
	})
}

func TestACallerThatGivesUpWhileItWaitsIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		w.put(t.Context(), "t", "a")
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := w.put(ctx, "t", "b"), w.put(t.Context(), "t", "b/2")
		cancel()
		synctest.Wait()
		require.True(t, gone.answered())
		require.ErrorIs(t, gone.err, context.Canceled)
		require.ErrorAs(t, gone.err, new(group.NotTaken))
		w.end(0, nil)
		require.Equal(t, [][]string{{"a"}, {"b/2"}}, w.written())
		w.finish()
		require.NoError(t, stays.err)

		w = newWriter(some)
		late := w.put(ctx, "t", "a")
		require.ErrorAs(t, late.err, new(group.NotTaken))
		require.Empty(t, w.written())
		w.finish()
	})
}

func TestACallerThatGivesUpLeavesTheOthersTheirStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		w.put(t.Context(), "t", "a")
		one, cancelOne := context.WithCancel(t.Context())
		two, cancelTwo := context.WithCancel(t.Context())
		gone, last := w.put(one, "t", "b"), w.put(two, "t", "c")
		w.end(0, nil)
		cancelOne()
		synctest.Wait()
		require.True(t, gone.answered())
		require.ErrorIs(t, gone.err, group.ErrUnanswered)
		require.ErrorIs(t, gone.err, context.Canceled)
		require.NotErrorAs(t, gone.err, new(group.NotTaken))
		require.NoError(t, w.contexts[1].Err())
		require.False(t, last.answered())

		cancelTwo() // nobody is left who waits for it
		synctest.Wait()
		require.ErrorIs(t, w.contexts[1].Err(), context.Canceled)
		require.Equal(t, context.Canceled, last.err, "what the statement said of itself")
		w.finish()
	})
}

func TestALastCallerWhoseTimeHasRunOutIsToldThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		late := w.put(ctx, "t", "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, late.answered())
		require.ErrorIs(t, late.err, context.DeadlineExceeded)
		require.ErrorIs(t, late.err, context.Canceled, "what the statement said of itself")
		w.finish()
	})
}

func TestNoCallersDeadlineIsTheStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "kept"), time.Hour)
		defer cancel()
		w.put(ctx, "t", "a")
		_, bound := w.contexts[0].Deadline()
		require.False(t, bound)
		require.Equal(t, "kept", w.contexts[0].Value(key{}))
		w.finish()
	})
}

func TestACallerStaysForWhatIsBeingWrittenIfItIsToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Stays = true
		w := newWriter(config)
		ctx, cancel := context.WithCancel(t.Context())
		stays := w.put(ctx, "t", "a")
		gone := w.put(ctx, "t", "b")
		cancel()
		synctest.Wait()
		require.ErrorAs(t, gone.err, new(group.NotTaken))
		require.False(t, stays.answered())
		w.end(0, nil)
		require.NoError(t, stays.err)
		require.Equal(t, "did a", stays.result)
		w.finish()
	})
}

func TestNoCallerWaitsForAWriterLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Wait = func() time.Duration { return 5 * time.Second }
		w := newWriter(config)
		first, second := w.put(t.Context(), "t", "a"), w.put(t.Context(), "t", "b")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, second.err, group.ErrLate)
		require.ErrorAs(t, second.err, new(group.NotTaken))
		require.False(t, first.answered(), "it is being written")
		w.finish()
		require.NoError(t, first.err)
	})
}

func TestASlowStatementHoldsUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Slow, config.Spare = time.Second, 1
		w := newWriter(config)
		for _, item := range []string{"a/1", "a/2", "b"} {
			w.put(t.Context(), "t", item)
		}
		require.Len(t, w.written(), 1)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, [][]string{{"a/1"}, {"b"}}, w.written())
		w.put(t.Context(), "t", "c")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, w.written(), 2, "no more than the spare ones")
		w.end(0, nil)
		require.Len(t, w.written(), 2, "and the slow one gives its place up")
		w.end(1, nil)
		require.Equal(t, []string{"c", "a/2"}, w.written()[2])
		w.finish()
	})
}

func TestNoMoreWaitThanMayAndHalfOfThemOfOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := some
		config.Waiting = 4
		w := newWriter(config)
		for _, item := range []string{"a", "b", "c"} {
			require.False(t, w.put(t.Context(), "hot", item).answered())
		}
		more := w.put(t.Context(), "hot", "d")
		require.ErrorIs(t, more.err, group.ErrFull)
		require.ErrorAs(t, more.err, new(group.NotTaken))
		require.False(t, w.put(t.Context(), "one", "e").answered())
		require.False(t, w.put(t.Context(), "two", "f").answered())
		require.ErrorIs(t, w.put(t.Context(), "three", "g").err, group.ErrFull)
		w.finish()
		require.Len(t, slices.Concat(w.written()...), 5)
	})
}

func TestAClosedGroupRefusesWhoWaitsAndWaitsForWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(some)
		first, second := w.put(t.Context(), "t", "a"), w.put(t.Context(), "t", "b")
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			w.Close()
		}()
		synctest.Wait()
		require.ErrorIs(t, second.err, group.ErrClosed)
		require.ErrorAs(t, second.err, new(group.NotTaken))
		require.ErrorIs(t, w.put(t.Context(), "t", "c").err, group.ErrClosed)
		require.False(t, first.answered())
		select {
		case <-closed:
			t.Fatal("closed while a statement runs")
		default:
		}
		w.end(0, nil)
		<-closed
		require.NoError(t, first.err)
		w.Close()
	})
}

// Whatever many callers do at once, each is answered, and nothing is written twice or left behind.
func TestEachOfACrowdIsAnsweredOnce(t *testing.T) {
	var mu sync.Mutex
	written := map[string]int{}
	busy := map[string]bool{}
	config := group.Config{Writers: 3, Most: 8, Bytes: 64, Waiting: 10_000}
	g := group.New[string](config, func(_ context.Context, items []string, answer func(int, string, error)) {
		mu.Lock()
		for _, item := range items {
			key, _, _ := cut(item)
			if busy[key] {
				written["two at once"]++
			}
			busy[key] = true
			written[item]++
		}
		mu.Unlock()
		for i, item := range items {
			key, _, _ := cut(item)
			mu.Lock()
			delete(busy, key)
			mu.Unlock()
			answer(i, item, nil)
		}
	})
	var calls sync.WaitGroup
	wrong := make(chan string, 10_000)
	for c := range 100 {
		calls.Go(func() {
			for i := range 50 {
				item := fmt.Sprintf("%d/%d/%d", (c+i)%17, c, i)
				key, _, _ := cut(item)
				ctx, cancel := context.WithCancel(context.Background())
				if i%10 == 9 {
					cancel()
				}
				got, err := g.Do(ctx, group.Place[string]{Tenant: fmt.Sprint(c % 5), Key: key, Size: 1}, item)
				cancel()
				if i%10 == 9 && err == nil || i%10 != 9 && (err != nil || got != item) {
					wrong <- item
				}
			}
		})
	}
	calls.Wait()
	g.Close()
	require.Empty(t, wrong)
	require.Len(t, written, 100*45)
	for item, times := range written {
		require.Equal(t, 1, times, item)
	}
}
