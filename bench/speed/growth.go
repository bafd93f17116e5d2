package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/bench/speed/load"
)

const (
	// largeRows are the rows of turns that are many, and smallRows those that are few.
	largeRows, smallRows           = 10_000_000, 10_000
	largeRowsShort, smallRowsShort = 100_000, 10_000
	// seedTurns is how many turns the conversation has that is copied. Each is two rows of turns and one of provider_calls.
	seedTurns = 5
	// seedDeltas is how long its replies are, and those that are made while it is measured.
	seedDeltas = 4
	// rowBytes is what a row of turns takes at most while tables are filled, with its share of calls, indexes, the log and what is
	// sorted to make indexes; freeBytes has to be left.
	rowBytes, freeBytes = 2500, 10 << 30
	// sayMost is how many turns are said to copies at a time. The few copies would otherwise be several times as long in the end, and
	// whoever reads them would find more on the small tables than on the large ones.
	sayMost = 50
	// tableRounds are the rounds in which tables are compared; one that does not count comes before.
	tableRounds = 5
	// patience is for how long one call may take where none ended inside the window.
	patience = 5 * time.Minute
	// levels is how many more pages a call may read where tables are large: their indexes are twice as deep.
	levels = 2.0
)

// grown is one database of the two that are compared.
type grown struct {
	name, dsn string
	known     load.Filled
	turnd     *server
}

// growth measures what does not have to grow: a turn where its conversation is long, and calls where the tables are large.
func growth(s *stage) error {
	large, small, err := growthRows(s.short)
	if err != nil {
		return err
	}
	if err := enoughDisk(s.dir, int64(large+small)*rowBytes+freeBytes); err != nil {
		return err
	}
	g := &growing{bench: &bench{stage: s, report: s.newReport()}}
	if g.many, err = s.provider(streamed(seedDeltas)); err != nil {
		return err
	}
	if err := g.longConversation(); err != nil {
		return err
	}
	if err := g.largeTables(large, small); err != nil {
		return err
	}
	return g.report.close(s, "bench-growth")
}

// growing is a bench of things that grow.
type growing struct{ *bench }

// growthRows is how many rows the large and the small table of turns have; ROWS sets the former.
func growthRows(short bool) (large, small int, err error) {
	large, small = largeRows, smallRows
	if short {
		large, small = largeRowsShort, smallRowsShort
	}
	if rows := os.Getenv("ROWS"); rows != "" {
		if large, err = strconv.Atoi(rows); err != nil || large < 2*small {
			return 0, 0, fmt.Errorf("ROWS is %q, and must be a number from %d on", rows, 2*small)
		}
	}
	return large, small, nil
}

// enoughDisk says whether a folder's disk has room for what is to be written.
func enoughDisk(dir string, need int64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return err
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need { //nolint:gosec // disks are smaller
		return fmt.Errorf("%s has %.0f GB free and %.0f GB are needed: set TMPDIR to a larger disk, or ROWS to fewer rows",
			dir, float64(free)/1e9, float64(need)/1e9)
	}
	return nil
}

// largeTables compares calls on few rows and on very many.
func (g *growing) largeTables(large, small int) error {
	fmt.Println("--- tables")
	seed, err := g.seed()
	if err != nil {
		return err
	}
	dbs := []*grown{{name: "large"}, {name: "small"}}
	for i, rows := range []int{large, small} {
		db := dbs[i]
		if db.dsn, err = g.pg.clone(g.ctx, db.name, seed); err != nil {
			return err
		}
		if err := g.pg.planning(g.ctx, db.name); err != nil {
			return err
		}
		if db.known, err = fill(g.ctx, db.dsn, rows/(2*seedTurns)); err != nil {
			return err
		}
	}
	if err := g.sizes(dbs); err != nil {
		return err
	}
	for _, db := range dbs {
		// Nothing but what is asked for is to run: a sweep of its own would count with some calls and not with others.
		if db.turnd, err = g.serviceOn(db.dsn, modelsOf(g.many.Addr, ""), nil, "--sweep", "1h", "--lease", "1h"); err != nil {
			return err
		}
	}
	return g.compareTables(dbs)
}

// seed has turnd make one conversation in a database, and returns its name.
func (g *growing) seed() (name string, err error) {
	name = g.name("seed")
	dsn, err := g.pg.create(g.ctx, name)
	if err != nil {
		return "", err
	}
	turnd, err := g.serviceOn(dsn, modelsOf(g.many.Addr, ""), nil)
	if err != nil {
		return "", err
	}
	_, err = g.load(talk(turnd, load.Filled{Conversations: 1, Conversation: uuid.New(), Turns: []uuid.UUID{uuid.Nil}}, seedTurns))
	if err != nil {
		return "", err
	}
	return name, turnd.End(syscall.SIGTERM, time.Minute)
}

// talk goes on with one conversation by so many turns.
func talk(turnd *server, known load.Filled, turns int) load.Spec {
	return load.Spec{
		Shape: load.Say, Target: turnd.Listen, Clients: 1, Deltas: seedDeltas, Most: turns, Window: limit, Filled: &known,
		Watch: map[string]int{"turnd": turnd.PID()},
	}
}

// sizes prints how large tables and indexes are.
func (g *growing) sizes(dbs []*grown) error {
	found := map[string]map[string]int64{}
	for _, db := range dbs {
		err := g.pg.with(g.ctx, db.name, func(conn *pgx.Conn) (err error) {
			found[db.name], err = relationSizes(g.ctx, conn)
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("%-44s %12s %12s\n", "MB of tables (with what is out of line) and indexes", dbs[0].name, dbs[1].name)
	for _, name := range slices.Sorted(maps.Keys(found[dbs[0].name])) {
		fmt.Printf("%-52s %12.2f %12.2f\n", name, float64(found[dbs[0].name][name])/1e6, float64(found[dbs[1].name][name])/1e6)
	}
	g.report.note("sizes", found)
	return nil
}

// relationSizes are those of the tables that grow, and of their indexes as "table.index".
func relationSizes(ctx context.Context, conn *pgx.Conn) (map[string]int64, error) {
	rows, err := conn.Query(ctx, `
SELECT relname::text, pg_table_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'goose_db_version'
UNION ALL SELECT format('%s.%s', indrelid::regclass, indexrelid::regclass), pg_relation_size(indexrelid)
FROM pg_index JOIN pg_class ON pg_class.oid = indrelid WHERE relnamespace = 'public'::regnamespace AND relname <> 'goose_db_version'`)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	var name string
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&name, &bytes}, func() error {
		sizes[name] = bytes
		return nil
	})
	return sizes, err
}

// probe is a call that is compared, with the goals of its time and of its pages.
type probe struct {
	shape string
	goal  float64
	pages float64
	// claimed has the time to the claim counted and not that of the turn.
	claimed bool
}

// spec is one round of it.
func (p probe) spec(known load.Filled, window time.Duration) load.Spec {
	s := load.Spec{Shape: p.shape, Clients: 1, Deltas: seedDeltas, Window: window, Filled: &known}
	if p.shape == load.Say {
		s.Most = sayMost
	}
	return s
}

// probes are what is asked of both. Those of the contract are claim and sweep; the others are held to the same.
var probes = []probe{
	{shape: load.Claim, goal: 1.2, pages: levels, claimed: true},
	{shape: load.Say, goal: 1.2, pages: levels},
	{shape: load.Again, goal: 1.2, pages: levels},
	{shape: load.Turns, goal: 1.2, pages: levels},
	{shape: load.Conversations, goal: 1.2, pages: levels},
	{shape: load.Ledger, goal: 1.2, pages: levels},
	{shape: load.Sweep, goal: 1.2, pages: levels},
}

// compareTables asks both databases the same, in rounds, and adds a figure for time and one for pages of each call.
func (g *growing) compareTables(dbs []*grown) error {
	p := pace{window: 3 * time.Second, rounds: tableRounds}
	if g.short {
		p = pace{window: 500 * time.Millisecond, rounds: 2}
	}
	costs := map[string][]map[string]callCost{}
	for n := -1; n < p.rounds; n++ { // the first does not count
		for _, probe := range probes {
			seen := map[string]callCost{}
			for i := range dbs {
				db := dbs[(i+max(0, n))%len(dbs)]
				cost, err := g.ask(db, probe, p)
				if err != nil {
					return fmt.Errorf("%s on the %s tables: %w", probe.shape, db.name, err)
				}
				seen[db.name] = cost
				if n >= 0 {
					fmt.Printf("round %d  %-18s %-5s  %s\n", n+1, probe.shape, db.name, cost)
				}
			}
			if n >= 0 {
				costs[probe.shape] = append(costs[probe.shape], seen)
			}
		}
	}
	g.report.note("tables", costs)
	for _, probe := range probes {
		g.judge(probe, costs[probe.shape])
	}
	return nil
}

// callCost is what a call cost: its time at the median, and what it had Postgres do.
type callCost struct {
	Calls    int     `json:"calls"`
	MS       float64 `json:"p50_ms"`
	CPU      float64 `json:"postgres_cpu_ms"`
	Executed float64 `json:"statements_ms"`
	Pages    float64 `json:"pages"`
	WAL      float64 `json:"wal_bytes"`
	Rows     float64 `json:"rows"`
}

func (c callCost) String() string {
	return fmt.Sprintf("p50 %7.3f ms  %5d calls  each: CPU of Postgres %6.3f ms, statements %6.3f ms, pages %6.1f, WAL %6.0f bytes",
		c.MS, c.Calls, c.CPU, c.Executed, c.Pages, c.WAL)
}

// ask loads one database with one kind of call.
func (g *growing) ask(db *grown, probe probe, p pace) (c callCost, err error) {
	if err := g.pg.settle(g.ctx); err != nil {
		return c, err
	}
	if err := g.pg.forget(g.ctx); err != nil {
		return c, err
	}
	spec := probe.spec(db.known, p.window)
	spec.Target = db.turnd.Listen
	spec.Watch = map[string]int{"turnd": db.turnd.PID(), "postgres": g.pg.server.PID()}
	r, err := g.load(spec)
	if err == nil && r.Turns == 0 { // one call takes longer, which is for the figure to say
		spec.Most, spec.Window = 1, patience
		if err := g.pg.forget(g.ctx); err != nil {
			return c, err
		}
		r, err = g.load(spec)
	}
	if err == nil && r.Turns == 0 {
		err = fmt.Errorf("no call ended within %s", patience)
	}
	if err != nil {
		return c, err
	}
	spent, err := g.pg.spent(g.ctx, db.name)
	c = spent.each(r.Turns, r.P50, r.CPU["postgres"])
	if probe.claimed {
		c.MS = r.First
	}
	return c, err
}

// judge compares within rounds.
func (g *growing) judge(probe probe, costs []map[string]callCost) {
	of := func(read func(callCost) float64) (ratio, large, small float64) {
		return against(costs, "large", "small", read)
	}
	ratio, large, small := of(func(c callCost) float64 { return c.MS })
	executed, _, _ := of(func(c callCost) float64 { return c.Executed })
	cpu, _, _ := of(func(c callCost) float64 { return c.CPU })
	g.report.add(Figure{
		Name: probe.shape, Value: ratio, Goal: probe.goal, AtMost: true,
		Of: fmt.Sprintf("p50 of large %.2f ms, small %.2f ms; statements %.2f times, CPU of Postgres %.2f times",
			large, small, executed, cpu),
	})
	pages, large, small := of(func(c callCost) float64 { return c.Pages })
	g.report.add(Figure{
		Name: probe.shape + "_pages", Value: pages, Goal: probe.pages, AtMost: true,
		Of: fmt.Sprintf("pages a call: large %.1f, small %.1f", large, small),
	})
}

// against are the medians over rounds of a ratio that is taken within each, and of its two sides.
func against(costs []map[string]callCost, a, b string, read func(callCost) float64) (ratio, ofA, ofB float64) {
	var ratios, as, bs []float64
	for _, round := range costs {
		x, y := read(round[a]), read(round[b])
		ratios, as, bs = append(ratios, x/y), append(as, x), append(bs, y)
	}
	return median(ratios), median(as), median(bs)
}
