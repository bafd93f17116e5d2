package main

import (
	"context"
	"time"

	"github.com/turnd/turnd/bench/rig"
)

// plant is a fault put into the service for one build, and a game that brings it to light.
type plant struct {
	name  string
	edits []rig.Edit
	// by are the promises of which one must be found broken.
	by   []string
	game func(seed int64) game
}

// plants are the faults that the check of chaos has to notice.
var plants = []plant{
	{
		name: "fence_off", by: []string{"P4", "P8"}, game: pausing,
		edits: []rig.Edit{{
			File: "turns/postgres/replies.go",
			Old:  "t.status = 'in_flight' AND t.epoch = i.epoch AND t.owner = i.owner",
			New:  "(true OR t.epoch = i.epoch AND t.owner = i.owner)",
		}},
	},
	{
		name: "index_dropped", by: []string{"P1"}, game: withoutIndexes,
		edits: []rig.Edit{{
			File: "turns/postgres/schema.go",
			Old:  "broken = append(broken, err)",
			New:  "continue",
		}},
	},
	{
		name: "sweep_by_age", by: []string{"P11"}, game: quietly,
		edits: []rig.Edit{
			{
				File: "turns/postgres/sweep.go", Old: "(w.worker_id IS NULL OR w.dead OR",
				New: "(t.create_time < clock_timestamp() - interval '2 s' OR w.worker_id IS NULL OR w.dead OR",
			},
			{File: "turns/sweep.go", Old: "case !stale.OwnerDead:", New: "case !stale.OwnerDead && stale.DeadlinePassed:"},
			{
				File: "turns/postgres/ending.go", Old: "OR NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_id = t.owner AND NOT w.dead)",
				New: "OR t.create_time < clock_timestamp() - interval '2 s'",
			},
		},
	},
	{
		name: "hint_is_truth", by: []string{"P4", "P6"}, game: quietly,
		edits: []rig.Edit{{
			File: "turns/live/mirror.go",
			Old:  "	return h.Ended || h.Epoch > m.epoch || h.Length > m.log.Len()",
			New: `	if h.Ended {
		m.log.mu.Lock()
		reply := m.log.reply
		m.log.mu.Unlock()
		reply.Status, reply.StopReason, reply.Length = turns.StatusComplete, "end_turn", m.log.Len()
		m.log.End(reply)
	}
	return h.Ended || h.Epoch > m.epoch || h.Length > m.log.Len()`,
		}},
	},
	{
		name: "call_closed_twice", by: []string{"P12"}, game: quietly,
		edits: []rig.Edit{
			{File: "turns/postgres/replies.go", Old: "	WHERE (p.class = '' OR p.waste_cause = 'deleted') ORDER BY p.conversation_key", New: "	ORDER BY p.conversation_key"},
			{File: "turns/postgres/replies.go", Old: "p.call_id = l.call_id AND (p.class = '' OR p.waste_cause = 'deleted')`", New: "p.call_id = l.call_id`"},
			{
				File: "turns/postgres/replies.go", Old: "= o.response_id, input_tokens = o.input",
				New: "= o.response_id, input_tokens = p.input_tokens + o.input",
			},
			{File: "turns/finish.go", Old: "	} else if e.Call != nil && e.Call.ID != r.counted {", New: "	} else if e.Call != nil && e.Call.ID != r.counted {\n		r.closeLost(ctx, *e.Call)"},
		},
	},
}

// pausing stops one worker after the other past its lease while clients stop what it makes or send it again.
func pausing(seed int64) game {
	m := usualMix
	m.classes, m.cancel, m.duplicate = []string{classCalm, classLong, classCalm, classRough}, 45, 60
	g := game{seed: seed, length: 22 * time.Second, clients: 20, mix: m}
	for i := range 5 {
		g.plan = append(g.plan, fault{at: 1500*time.Millisecond + time.Duration(i)*4*time.Second, kind: "worker_paused", worker: i % workerCount, hold: 3300 * time.Millisecond})
	}
	return g
}

// withoutIndexes is pausing, once the arbiters of claims were dropped, and with nobody who stops anything.
func withoutIndexes(seed int64) game {
	g := pausing(seed)
	g.mix.cancel, g.mix.classes = 0, []string{classLong}
	g.after = func(ctx context.Context, c *cluster) error {
		return execute(ctx, c.database.dsn(), "DROP INDEX one_live_reply_per_user_turn, one_running_reply_per_conversation")
	}
	return g
}

// quietly has clients come and go, follow from everywhere and stop replies, and lets nothing else go wrong.
func quietly(seed int64) game {
	m := usualMix
	m.submit, m.duplicate, m.cancel = 40, 80, 15
	return game{seed: seed, length: 14 * time.Second, clients: 16, mix: m, plan: []fault{}}
}
