package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// storyCalls call each method of stories once, and what a doctor asks.
func (d database) storyCalls(t *testing.T, run turns.Claim) []func() error {
	ctx, s := t.Context(), d.store
	return []func() error{
		func() error {
			return s.AddRepeats(ctx, []turns.Repeats{{Key: run.Key, Turn: run.Turn, Layer: turns.Layer(turns.SourceClientRetry), Count: 1}})
		},
		func() error {
			_, err := s.ReadStory(ctx, turns.StoryQuery{Key: run.Key, Row: run.Turn.Row(), Replies: 50, Calls: 500})
			return err
		},
		func() error {
			_, err := s.SumRepeats(ctx, turns.LedgerFilter{Tenant: "tenant1", From: time.Now()})
			return err
		},
		func() error {
			_, err := s.SumRepeats(ctx, turns.LedgerFilter{Tenant: "tenant1", Key: &run.Key})
			return err
		},
		func() error { _, err := s.Vitals(ctx); return err },
	}
}

// storyRecords are lines of an archive that tell more of a turn than its rows.
func storyRecords() []turns.ArchivedRecord {
	now := time.Now()
	return []turns.ArchivedRecord{
		{Takeover: &turns.ArchivedTakeover{Reply: turns.ReplyID{UUID: uuid.New()}, Epoch: 2,
			From: turns.WorkerID{UUID: uuid.New()}, To: turns.WorkerID{UUID: uuid.New()}, CreateTime: now}},
		{Repeats: &turns.ArchivedRepeats{Turn: turns.TurnID{UUID: uuid.New()}, Layer: turns.Layer(turns.SourceClientRetry), Count: 1, FirstTime: now, LastTime: now}},
	}
}
