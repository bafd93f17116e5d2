package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	// maxFollowed bounds the turns that are followed at a time.
	maxFollowed = 256
	// saveEvery is the least time between two records of how far a reply is.
	saveEvery = time.Second
)

// ErrFull is returned by Add while as many turns are followed as may be.
var ErrFull = errors.New("too many turns are followed; try again later")

// Follower follows the replies of turns, and delivers each once it is over.
type Follower struct {
	client  *client.Client
	records Records
	deliver Deliver
	log     *slog.Logger

	mu       sync.Mutex
	followed map[Turn]bool
	all      sync.WaitGroup
}

// Resume goes on with what an earlier process left.
func (f *Follower) Resume(ctx context.Context) error {
	records, err := f.records.Load()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, record := range records {
		f.start(ctx, record)
	}
	return nil
}

// Add puts a turn on record and follows it. When it returns, the turn is not forgotten by a crash.
func (f *Follower) Add(ctx context.Context, turn Turn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followed[turn] {
		return nil
	}
	if len(f.followed) >= maxFollowed {
		return ErrFull
	}
	record := Record{Turn: turn}
	if err := f.records.Save(record); err != nil {
		return err
	}
	f.start(ctx, record)
	return nil
}

// Wait returns once nothing is followed any more.
func (f *Follower) Wait() { f.all.Wait() }

// start is called with the lock held.
func (f *Follower) start(ctx context.Context, record Record) {
	f.followed[record.Turn] = true
	f.all.Go(func() {
		err := f.follow(ctx, record)
		if err != nil && ctx.Err() == nil {
			f.log.Error("a turn is not followed any more", slog.String("turn_id", record.TurnID), slog.Any("error", err))
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followed, record.Turn)
	})
}

// follow reads a reply to its end and delivers it. The record stays until that is done, or there is no such turn. Whatever
// else is wrong, such as a key, can be mended, and the next start goes on.
func (f *Follower) follow(ctx context.Context, record Record) error {
	for {
		end, err := f.read(ctx, &record)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && refused.Code == codes.NotFound:
			return errors.Join(err, f.records.Drop(record.Turn))
		case err != nil:
			return err
		case end.GetHeld() != nil: // an operator has to find out what came of it
			if err := pause(ctx, max(time.Minute, end.GetHeld().GetRetryDelay().AsDuration())); err != nil {
				return err
			}
			continue
		}
		if err := f.deliver(ctx, finished(record, end)); err != nil {
			return err
		}
		return f.records.Drop(record.Turn)
	}
}

// read follows a reply from where the record is to an end, and keeps the record up with it.
func (f *Follower) read(ctx context.Context, record *Record) (end *turnsv1.Event, err error) {
	target := client.Target{ReplyID: record.ReplyID, TurnID: record.TurnID}
	stream := f.client.Follow(record.ConversationID, target, record.Offset)
	saved := time.Now()
	for event, err := range stream.Events(ctx) {
		if err != nil {
			return nil, errors.Join(err, f.records.Save(*record))
		}
		record.take(event, stream.Reply().Cursor())
		if time.Since(saved) >= saveEvery {
			if err := f.records.Save(*record); err != nil {
				return nil, err
			}
			saved = time.Now()
		}
	}
	return stream.Reply().End(), f.records.Save(*record)
}

// take adds an event to the record. The client hands out each byte once, so there is nothing to compare.
func (r *Record) take(event *turnsv1.Event, cursor *turnsv1.Cursor) {
	switch kind := event.GetKind().(type) {
	case *turnsv1.Event_Delta:
		if isForReading(kind.Delta.GetKind()) {
			r.Text += kind.Delta.GetText()
		}
	case *turnsv1.Event_Restarted:
		if !kind.Restarted.GetContinues() {
			r.Text = ""
		}
	}
	if cursor != nil {
		r.ReplyID, r.Offset = cursor.GetReplyId(), cursor.GetOffset()
	}
}

// isForReading tells text and refusals from thinking and the input of tools.
func isForReading(k turnsv1.BlockKind) bool {
	return k == turnsv1.BlockKind_BLOCK_KIND_TEXT || k == turnsv1.BlockKind_BLOCK_KIND_REFUSAL
}

func finished(r Record, end *turnsv1.Event) Finished {
	f := Finished{Turn: r.Turn, ReplyID: r.ReplyID, End: "completed", Text: r.Text}
	if abandoned := end.GetAbandoned(); abandoned != nil {
		f.End, f.Reason = "abandoned", strings.TrimPrefix(abandoned.GetReason().String(), "ABANDON_REASON_")
	}
	return f
}
