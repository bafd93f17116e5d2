package turns

import (
	"context"
	"time"
)

// Retention is the port by which conversations that nobody uses any more are deleted. Like Archive it is no part of Store.
type Retention interface {
	ArchiveReader
	// DeleteUnused leaves only the mark of a conversation that was last used longer than a time ago; deleted is false if it
	// was used since, is deleted already or missing, or has a reply in flight or held or a turn in line. With dry nothing is
	// written.
	DeleteUnused(ctx context.Context, key ConversationKey, unusedFor time.Duration, dry bool) (deleted bool, err error)
	// EraseConversation is that of Deletions.
	EraseConversation(ctx context.Context, key ConversationKey, limit int) (left bool, err error)
}

// PurgeSelection says which conversations are purged.
type PurgeSelection struct {
	// UnusedFor is how long ago they were last used, at least.
	UnusedFor time.Duration
	// Tenant and Labels, if not empty, must be theirs.
	Tenant Tenant
	Labels map[string]string
	// Dry counts and deletes nothing.
	Dry bool
}

// Purged counts what a purge came to.
type Purged struct {
	// Looked counts the conversations that were looked at, deleted ones among them, Deleted those that went, and Kept those
	// that are old enough and stay: something runs, is held or waits in them, or they were used meanwhile.
	Looked  int
	Deleted int
	Kept    int
}

// Purge deletes conversations one by one. What it has deleted when it is interrupted stays deleted, and another purge goes
// on where it stopped; rows that are left are erased by any worker.
func Purge(ctx context.Context, store Retention, s PurgeSelection) (p Purged, err error) {
	err = EachArchiveName(ctx, store, func(name ArchiveName) error {
		p.Looked++
		return p.one(ctx, store, s, name)
	})
	return p, err
}

// one deletes a conversation if it is chosen. The store decides: what was read before only spares it the question.
func (p *Purged) one(ctx context.Context, store Retention, s PurgeSelection, name ArchiveName) error {
	chosen := !name.Deleted && (s.Tenant == "" || s.Tenant == name.Tenant) && time.Since(name.UpdateTime) > s.UnusedFor &&
		haveLabels(name.Labels, s.Labels)
	if !chosen {
		return nil
	}
	deleted, err := store.DeleteUnused(ctx, name.Key, s.UnusedFor, s.Dry)
	if err != nil {
		return err
	}
	if !deleted {
		p.Kept++
		return nil
	}
	p.Deleted++
	for left := !s.Dry; left && err == nil; {
		left, err = store.EraseConversation(ctx, name.Key, eraseRows)
	}
	return err
}
