package main

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/turnd/turnd/bench/speed/load"
)

const (
	// longTurns is how many turns the old conversation has in the end, and youngTurns the young one before it is measured.
	longTurns, longTurnsShort, youngTurns = 5000, 300, 50
	// longWindow is the window of the model in tokens: fifty turns fit, and after that both conversations send as much.
	longWindow = 3000
	longReply  = 100
	// together is how many turns of one are measured before it is the other's. A window fills from three quarters to full and is
	// then cut, so that a turn costs more than the one before; so many turns are several such periods.
	together = 40
	longGoal = 1.1
)

// longConversation compares the last turns of a very long conversation with those past the fiftieth of a young one, on the same
// service: the time of a whole turn, which reads its history and sends it, and what it has Postgres do.
func (g *growing) longConversation() error {
	fmt.Println("--- long conversation")
	total, rounds := longTurns, 5
	if g.short {
		total, rounds = longTurnsShort, 2
	}
	name := g.name("long")
	dsn, err := g.pg.create(g.ctx, name)
	if err != nil {
		return err
	}
	if err := g.pg.planning(g.ctx, name); err != nil {
		return err
	}
	limits := fmt.Sprintf(", limits: {window_tokens: %d, max_output_tokens: %d}", longWindow, longReply)
	turnd, err := g.serviceOn(dsn, modelsOf(g.many.Addr, limits), nil, "--sweep", "1h", "--lease", "1h")
	if err != nil {
		return err
	}
	spec := map[string]load.Spec{}
	for who, before := range map[string]int{"old": total - rounds*together, "young": youngTurns} {
		known := load.Filled{Conversations: 1, Conversation: uuid.New(), Turns: []uuid.UUID{uuid.Nil}}
		r, err := g.load(talk(turnd, known, before))
		if err != nil {
			return err
		}
		fmt.Printf("%-6s said %d turns in %.1f s\n", who, before, r.Seconds)
		s := talk(turnd, known, together)
		s.Watch["postgres"] = g.pg.server.PID()
		spec[who] = s
	}
	if err := g.pg.learn(g.ctx); err != nil {
		return err
	}
	var costs []map[string]callCost
	for n := range rounds {
		seen := map[string]callCost{}
		for i := range 2 {
			who := []string{"old", "young"}[(n+i)%2]
			if seen[who], err = g.talkOn(name, spec[who]); err != nil {
				return fmt.Errorf("the %s conversation: %w", who, err)
			}
			fmt.Printf("round %d  %-6s  %s\n", n+1, who, seen[who])
		}
		costs = append(costs, seen)
	}
	g.report.note("long", costs)
	g.judgeLong(total, costs)
	return nil
}

func (g *growing) talkOn(database string, spec load.Spec) (c callCost, err error) {
	if err := g.pg.settle(g.ctx); err != nil {
		return c, err
	}
	if err := g.pg.forget(g.ctx); err != nil {
		return c, err
	}
	r, err := g.load(spec)
	if err != nil {
		return c, err
	}
	spent, err := g.pg.spent(g.ctx, database)
	return spent.each(together, r.P50, r.CPU["postgres"]), err
}

func (g *growing) judgeLong(total int, costs []map[string]callCost) {
	of := func(read func(callCost) float64) (ratio, old, young float64) {
		return against(costs, "old", "young", read)
	}
	ratio, old, young := of(func(c callCost) float64 { return c.MS })
	g.report.add(Figure{
		Name: "long", Value: ratio, Goal: longGoal, AtMost: true,
		Of: fmt.Sprintf("p50 of a whole turn: the %dth %.2f ms, the %dth %.2f ms", total, old, youngTurns, young),
	})
	for _, part := range []struct {
		name, what string
		read       func(callCost) float64
	}{
		{"long_pages", "pages a turn", func(c callCost) float64 { return c.Pages }},
		{"long_statements", "ms of statements a turn", func(c callCost) float64 { return c.Executed }},
		{"long_rows", "rows a turn that statements gave or wrote", func(c callCost) float64 { return c.Rows }},
	} {
		ratio, old, young := of(part.read)
		g.report.add(Figure{
			Name: part.name, Value: ratio, Goal: longGoal, AtMost: true, Of: fmt.Sprintf("%s: %.1f and %.1f", part.what, old, young),
		})
	}
}
