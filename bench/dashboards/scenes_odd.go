package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// odd is a worker that exports its traces to where nobody listens, and that looks at its database rarely.
func (h *house) odd() error {
	_, err := h.workerIn("odd", []string{
		"env", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT=300",
		"OTEL_BSP_SCHEDULE_DELAY=300", "OTEL_BSP_EXPORT_TIMEOUT=300", h.bin,
	},
		"--traces", "otlp", "--trace-sample", "1", "--lease", "20s", "--checkpoint", "20s")
	if err != nil {
		return err
	}
	// Prometheus takes up new targets every five seconds, and what has grown before that is not seen to grow.
	return until(h.ctx, patience, "the odd worker to be scraped", func() (bool, error) {
		samples, err := h.prom.ask(h.ctx, `up{instance="odd"} == 1`)
		return len(samples) > 0, err
	})
}

func (h *house) noCollector() error {
	for range 20 {
		if err := h.workers["odd"].sends(h.ctx, turn("quick", "traced")); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// oddReplies has replies wait on the odd worker.
func (h *house) oddReplies() error {
	const n = 3
	if h.workers["odd"] == nil {
		return errors.New("the odd worker did not start")
	}
	err := each(n, func(int) error { return h.workers["odd"].submits(h.ctx, turn("lost", "has no place")) })
	if err != nil {
		return err
	}
	return h.arrived("lost", n)
}

// noPlace settles the replies of a living worker as if it had been dead for long, and takes its spool away.
func (h *house) noPlace() error {
	spool := h.workers["odd"].spool
	if err := os.RemoveAll(spool); err != nil {
		return err
	}
	if err := os.WriteFile(spool, []byte("no folder"), 0o600); err != nil {
		return err
	}
	_, err := h.sql.Exec(h.ctx, `UPDATE turns SET status = 'abandoned', reason = 'lease_expired', end_time = now(), settled_at = now()
		WHERE model = 'lost' AND status = 'in_flight'`)
	if err != nil {
		return err
	}
	return h.opens("lost")
}

// runsOn has a reply wait that is to be doubled.
func (h *house) runsOn() error {
	if err := h.workers["calm"].submits(h.ctx, turn("doubled", "is answered twice")); err != nil {
		return err
	}
	return h.arrived("doubled", 1)
}

// noGuards drops the index that allows one live reply, and writes a second one as nothing else could.
func (h *house) noGuards() error {
	if _, err := h.sql.Exec(h.ctx, "DROP INDEX one_live_reply_per_user_turn"); err != nil {
		return err
	}
	tag, err := h.sql.Exec(h.ctx, `INSERT INTO turns SELECT (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'seq', t.seq + 1000,
		'attempt', t.attempt + 1, 'status', 'complete', 'end_time', now()))).* FROM turns t WHERE t.model = 'doubled' AND t.status = 'in_flight'`)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%d replies were doubled", tag.RowsAffected())
	}
	return err
}
