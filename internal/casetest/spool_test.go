package casetest

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/spool"
	"github.com/turnd/turnd/turns/storetest"
)

// spools gives the next workers a spool, and its directory.
func (w *world) spools() string {
	dir := w.t.TempDir()
	w.spoolsIn(dir)
	return dir
}

func (w *world) spoolsIn(dir string) {
	s, err := spool.Open(spool.Config{Path: dir, Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil))})
	require.NoError(w.t, err)
	w.spool = s
}

// files lists what lies in a spool.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a folder that was emptied meanwhile
		}
		if err == nil && !e.IsDir() && !strings.HasSuffix(path, ".tmp") {
			all = append(all, path)
		}
		return err
	}))
	return all
}

// losing is a worker whose database can be taken away, and how that is done.
func (w *world) losing() (*worker, *storetest.Faults) {
	faults := storetest.NewFaults(w.store())
	s := w.serveOn(faults)
	w.t.Cleanup(func() { faults.Down(nil) })
	return s, faults
}

// finishWithout runs a turn whose reply ends while its worker's database is away.
func (w *world) finishWithout(faults *storetest.Faults, s *worker, in *turnsv1.TurnInput) (seen state) {
	w.script(gate("", "mid", 64, 20), plain(16))
	seen = s.turn(in, nil).at(1 + 19*16)
	w.eventually(func() bool { return w.number(`SELECT count(*) FROM reply_chunks`) > 0 })
	faults.Down(turns.Unavailable(errors.New("away")))
	require.NoError(w.t, w.provider.OpenGate("mid"))
	w.eventually(func() bool { return faults.Calls("End") > 0 })
	return seen
}

// quit drains a worker without patience, as a process does whose grace is over.
func (w *world) quit(s *worker) {
	w.t.Helper()
	over, cancel := context.WithCancel(w.ctx)
	cancel()
	require.NoError(w.t, s.service.Drain(over, 10*time.Millisecond), "nothing is lost")
}

// sweptWhileSpooled runs a turn whose reply ends in a spool, and lets another worker sweep it.
func (w *world) sweptWhileSpooled(in *turnsv1.TurnInput) (dir string, other *worker, seen state) {
	w.t.Helper()
	w.short()
	dir = w.spools()
	s, faults := w.losing()
	w.spool = turns.NoSpool{}
	other = w.serve()
	seen = w.finishWithout(faults, s, in)
	w.quit(s)
	w.eventually(func() bool { return w.number(qInFlight) == 0 })
	return dir, other, seen
}

func TestAReplyThatEndsWithoutADatabaseIsWrittenByTheNextStart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		dir := w.spools()
		s, faults := w.losing()
		in := ask(newID(), newID(), "hi")
		seen := w.finishWithout(faults, s, in)
		w.quit(s)
		require.Len(t, files(t, dir), 1)
		w.stands(map[string]int{qInFlight: 1, qOpen: 1})

		next := w.serve()
		w.eventually(func() bool { return len(files(t, dir)) == 0 })
		got := next.follow(in.GetConversationId(), seen.reply, 0).completes()
		require.True(t, strings.HasPrefix(got.text, seen.text))
		require.Equal(t, replayed, next.turn(in, nil).completes().result)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0, `SELECT count(*) FROM provider_calls WHERE class = 'ok'`: 1})
	})
}

func TestAReplyWhoseClaimWasSweptMeanwhileIsSalvagedFromTheSpool(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		in := ask(newID(), newID(), "hi")
		dir, other, _ := w.sweptWhileSpooled(in)
		w.spoolsIn(dir)
		w.serve()
		w.eventually(func() bool { return len(files(t, dir)) == 0 })
		require.Equal(t, replayed, other.turn(in, nil).completes().result)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0})
	})
}

func TestAReplyWhoseSlotWasGivenAwayMeanwhileIsKeptAsWaste(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		in := ask(newID(), newID(), "hi")
		dir, other, seen := w.sweptWhileSpooled(in)
		w.script(plain(16))
		require.Equal(t, retried, other.turn(in, nil).completes().result)
		w.spoolsIn(dir)
		w.serve()
		w.eventually(func() bool { return len(files(t, dir)) == 0 })
		late := other.follow(in.GetConversationId(), seen.reply, 0).end()
		require.NotNil(t, late.abandoned)
		require.Greater(t, len(late.text), len(seen.text), "all of it is kept")
		w.stands(map[string]int{qLive: 1, qReplies: 2, qLedger: 2, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE token_source = 'reported'`:                    2,
			`SELECT count(*) FROM provider_calls WHERE wasted_tokens = input_tokens + output_tokens`: 1})
	})
}

func TestAnEndingThatWaitsForALeaseLiesInTheSpoolThoughItsWorkerLives(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dir := w.spools()
		s, faults := w.losing()
		in := ask(newID(), newID(), "hi")
		w.finishWithout(faults, s, in)
		w.eventually(func() bool { return len(files(t, dir)) == 1 })
		require.Equal(t, 1, s.service.InFlight(), "it still has its place")
		killed := t.TempDir() // what a kill at this moment leaves
		require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
		faults.Down(nil)
		w.eventually(func() bool { return len(files(t, dir)) == 0 && s.service.InFlight() == 0 })
		w.stands(map[string]int{qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0})

		w.spoolsIn(killed)
		w.serve()
		w.eventually(func() bool { return len(files(t, killed)) == 0 })
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0})
	})
}

func TestAnotherDatabasesEndingsAreLeftWhereTheyAre(t *testing.T) {
	one, two := sqliteWorld(t), sqliteWorld(t)
	dir := one.spools()
	s, away := one.losing()
	one.finishWithout(away, s, ask(newID(), newID(), "hi"))
	one.quit(s)

	two.settings.Sweep = 20 * time.Millisecond
	two.spoolsIn(dir)
	faults := storetest.NewFaults(two.store())
	two.serveOn(faults)
	two.eventually(func() bool { return faults.Calls("StaleReplies") > 20 })
	require.Equal(t, 1, faults.Calls("End"), "it is tried once")
	require.Len(t, files(t, dir), 1)

	one.spoolsIn(dir)
	one.serve()
	one.eventually(func() bool { return len(files(t, dir)) == 0 })
	one.stands(map[string]int{qLive: 1, qInFlight: 0})
}

func TestASpooledReplyThatAFailoverLostIsPutBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		dir := w.spools()
		s, faults := w.losing()
		in := ask(newID(), newID(), "hi")
		seen := w.finishWithout(faults, s, in)
		w.quit(s)
		w.loseReply()
		next := w.serve()
		w.eventually(func() bool { return len(files(t, dir)) == 0 })
		got := next.turn(in, nil).completes()
		require.Equal(t, replayed, got.result)
		require.Equal(t, seen.reply, got.reply)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0})
	})
}

func TestASpooledReplyWhoseTurnIsGoneStaysInItsFileUnlessItsConversationWasDeleted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		dir := w.spools()
		s, faults := w.losing()
		w.finishWithout(faults, s, ask(newID(), newID(), "hi"))
		w.quit(s)
		lost := t.TempDir()
		require.NoError(t, os.CopyFS(lost, os.DirFS(dir)))
		w.lose(`DELETE FROM provider_calls`, `DELETE FROM reply_chunks`, `DELETE FROM turns`, `UPDATE conversations SET deleted_at = create_time`)
		w.serve()
		w.eventually(func() bool { return len(files(t, dir)) == 0 })

		w.loseAll()
		w.settings.Sweep = 20 * time.Millisecond
		w.spoolsIn(lost)
		_, watched := w.losing()
		w.eventually(func() bool { return watched.Calls("StaleReplies") > 20 })
		require.Len(t, files(t, lost), 1)
		w.stands(map[string]int{qReplies: 0, qLedger: 0})
	})
}
