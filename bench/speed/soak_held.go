package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// held is what a service and its database hold at one moment. Sizes are in bytes.
type held struct {
	Minutes     float64 `json:"minutes"`
	Heap        float64 `json:"heap"` // and stacks, after a collection
	RSS         float64 `json:"rss"`
	Goroutines  float64 `json:"goroutines"`
	FDs         float64 `json:"fds"`
	Connections float64 `json:"connections"`
	Tables      float64 `json:"tables"`
	Indexes     float64 `json:"indexes"`
	Chunks      float64 `json:"chunks"`    // the table of chunks with its index
	Rows        float64 `json:"turn_rows"` // that were ever inserted into turns
	Live        float64 `json:"live"`      // rows of all tables but that of chunks
	Dead        float64 `json:"dead"`      // of them
	AllDead     float64 `json:"all_dead"`  // those of chunks as well
	HOT         float64 `json:"hot_share"` // of the updates of turns
}

func (h held) bytesATurn() float64 { return (h.Tables + h.Indexes - h.Chunks) / max(1, h.Rows) }

func (h held) deadShare() float64 { return h.Dead / max(1, h.Live+h.Dead) }

// heldColumns are what is printed and drawn.
var heldColumns = []struct {
	head, title string
	unit        float64
	of          func(held) float64
}{
	{"heap MiB", "heap and stacks after a collection, MiB", mebibyte, func(h held) float64 { return h.Heap }},
	{"RSS MiB", "resident memory, MiB", mebibyte, func(h held) float64 { return h.RSS }},
	{"gorout.", "goroutines", 1, func(h held) float64 { return h.Goroutines }},
	{"fds", "open file descriptors", 1, func(h held) float64 { return h.FDs }},
	{"conns", "connections to Postgres", 1, func(h held) float64 { return h.Connections }},
	{"tables MB", "tables, MB", 1e6, func(h held) float64 { return h.Tables }},
	{"index MB", "indexes, MB", 1e6, func(h held) float64 { return h.Indexes }},
	{"chunks MB", "the table of chunks with its index, MB", 1e6, func(h held) float64 { return h.Chunks }},
	{"rows", "rows of turns", 1, func(h held) float64 { return h.Rows }},
	{"B/row", "bytes of tables and indexes for one row of turns", 1, held.bytesATurn},
	{"dead", "dead rows", 1, func(h held) float64 { return h.AllDead }},
	{"HOT %", "share of HOT among the updates of turns, %", 0.01, func(h held) float64 { return h.HOT }},
}

var heldHead = func() string {
	head := fmt.Sprintf("%8s", "minute")
	for _, c := range heldColumns {
		head += fmt.Sprintf(" %10s", c.head)
	}
	return head
}()

func (h held) print(when string) {
	line := fmt.Sprintf("%8s", when)
	for _, c := range heldColumns {
		line += fmt.Sprintf(" %10.5g", c.of(h)/c.unit)
	}
	fmt.Println(line)
}

// look finds out what is held.
func (k *soaking) look() (h held, err error) {
	heap, err := k.inUse(k.turnd)
	if err != nil {
		return h, err
	}
	h.Heap, h.Minutes = float64(heap), time.Since(k.begun).Minutes()
	page, err := get(k.ctx, "http://"+k.turnd.Ops+"/debug/pprof/goroutine?debug=1")
	if err != nil {
		return h, err
	}
	if h.Goroutines, err = numberIn(page, goroutineLine); err != nil {
		return h, err
	}
	proc := fmt.Sprintf("/proc/%d", k.turnd.PID())
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return h, err
	}
	if h.RSS, err = numberIn(status, rssLine); err != nil {
		return h, err
	}
	h.RSS *= 1024
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return h, err
	}
	h.FDs = float64(len(fds))
	err = k.pg.with(k.ctx, k.database, func(conn *pgx.Conn) error { return h.stored(k, conn) })
	return h, err
}

var (
	goroutineLine = regexp.MustCompile(`^goroutine profile: total (\d+)`)
	rssLine       = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)
)

func numberIn(page []byte, line *regexp.Regexp) (float64, error) {
	found := line.FindSubmatch(page)
	if found == nil {
		head, _, _ := strings.Cut(string(bytes.TrimSpace(page)), "\n")
		return 0, fmt.Errorf("%s is not in what begins with %q", line, head)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// stored asks the database. Its counts of rows are those of its statistics, which sessions bring up to date as they rest.
func (h *held) stored(k *soaking, conn *pgx.Conn) error {
	err := conn.QueryRow(k.ctx, `
SELECT (SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'),
	sum(pg_table_size(relid)), sum(pg_indexes_size(relid)), sum(pg_total_relation_size(relid)) FILTER (WHERE relname = 'reply_chunks'),
	sum(n_tup_ins) FILTER (WHERE relname = 'turns'), sum(n_live_tup) FILTER (WHERE relname <> 'reply_chunks'),
	sum(n_dead_tup) FILTER (WHERE relname <> 'reply_chunks'), sum(n_dead_tup),
	COALESCE(sum(n_tup_hot_upd) FILTER (WHERE relname = 'turns')::float8 / NULLIF(sum(n_tup_upd) FILTER (WHERE relname = 'turns'), 0), 0)
FROM pg_stat_user_tables`).Scan(&h.Connections, &h.Tables, &h.Indexes, &h.Chunks, &h.Rows, &h.Live, &h.Dead, &h.AllDead, &h.HOT)
	if err != nil {
		return fmt.Errorf("what is stored: %w", err)
	}
	return nil
}
