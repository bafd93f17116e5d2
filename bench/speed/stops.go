package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/bench/speed/load"
)

const (
	// sampleEvery is how often it is looked what sessions wait for.
	sampleEvery = 20 * time.Millisecond
	// syncBytes is what is written before each flush that is timed: about what a turn adds to the log.
	syncBytes                = 8 << 10
	syncTimes, syncTimesLess = 1000, 200
	showWaits                = 6
)

// stops is what may have stopped a load, as the database saw it inside the window.
type stops struct {
	samples           int
	waits             map[string]int // of active sessions, by what each waited for; "on a core" for those that did not wait
	syncs, wal, pages float64        // flushes of the log, its bytes, and pages that were written into it whole
	commits           float64
	spare             float64 // the share of the machine's cores that nobody used
}

// watch looks at a database while a load's window is open, and has its statements counted from then on.
func (d *database) watch(ctx context.Context, name string, warm, window time.Duration) (s stops, err error) {
	s.waits = map[string]int{}
	err = d.with(ctx, name, func(conn *pgx.Conn) error {
		if err := rest(ctx, warm); err != nil {
			return err
		}
		if err := d.forget(ctx); err != nil {
			return err
		}
		before, err := readStops(ctx, conn)
		if err != nil {
			return err
		}
		idle, all, err := machineTicks()
		if err != nil {
			return err
		}
		for end := time.Now().Add(window); time.Now().Before(end); {
			if err := s.sample(ctx, conn); err != nil {
				return err
			}
			if err := rest(ctx, sampleEvery); err != nil {
				return err
			}
		}
		idleThen, allThen, err := machineTicks()
		if err != nil {
			return err
		}
		s.spare = (idleThen - idle) / max(1, allThen-all)
		after, err := readStops(ctx, conn)
		s.syncs, s.wal = after.syncs-before.syncs, after.wal-before.wal
		s.pages, s.commits = after.pages-before.pages, after.commits-before.commits
		return err
	})
	return s, err
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sample counts once what each session that is at work waits for.
func (s *stops) sample(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT COALESCE(wait_event_type || ':' || wait_event, 'on a core') FROM pg_stat_activity
		WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'`)
	if err != nil {
		return err
	}
	s.samples++
	var wait string
	_, err = pgx.ForEachRow(rows, []any{&wait}, func() error {
		s.waits[wait]++
		return nil
	})
	return err
}

func readStops(ctx context.Context, conn *pgx.Conn) (s stops, err error) {
	err = conn.QueryRow(ctx, `SELECT wal_sync, wal_bytes::float8, wal_fpi,
		(SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) FROM pg_stat_wal`).Scan(&s.syncs, &s.wal, &s.pages, &s.commits)
	return s, err
}

// machineTicks is for how long the machine's cores were idle, and were there, in ticks. A core that waits for a disk is idle.
func machineTicks() (idle, all float64, err error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	const idleAt, waitAt, guestAt = 4, 5, 9 // guests are counted with users as well
	for i, field := range strings.Fields(line) {
		if i == 0 || i >= guestAt {
			continue
		}
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += n
		if i == idleAt || i == waitAt {
			idle += n
		}
	}
	return idle, all, nil
}

// print says what was found, for the turns of a load.
func (s stops) print(r load.Result) {
	turns := float64(max(1, r.Turns))
	var words []string
	for _, wait := range slices.SortedFunc(maps.Keys(s.waits), func(a, b string) int { return cmp.Compare(s.waits[b], s.waits[a]) }) {
		words = append(words, fmt.Sprintf("%s %.1f", wait, float64(s.waits[wait])/float64(max(1, s.samples))))
	}
	fmt.Printf("         sessions at work, on average: %s\n", strings.Join(words[:min(len(words), showWaits)], ", "))
	fmt.Printf("         log: %.0f flushes/s, %.1f MB/s; a turn: %.2f flushes, %.1f commits, %.1f KB with %.1f whole pages\n",
		s.syncs/r.Seconds, s.wal/r.Seconds/1e6, s.syncs/turns, s.commits/turns, s.wal/turns/1e3, s.pages/turns)
}

// syncRate is how often a second a disk can flush what was appended to a file, one flush after the other.
func syncRate(dir string, short bool) (float64, error) {
	n := syncTimes
	if short {
		n = syncTimesLess
	}
	f, err := os.Create(filepath.Join(dir, "flushes"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, syncBytes)
	began := time.Now()
	for range n {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
