package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/turnd/turnd/turns"
)

// Selection says which conversations are exported: of one tenant, if it is not empty, and with one of the ids, if any.
type Selection struct {
	Tenant        turns.Tenant
	Conversations []turns.ConversationID
}

// Exported counts what was written.
type Exported struct {
	Conversations int
	// Deleted are those of the conversations of which there is only the mark.
	Deleted int
	Turns   int
	Replies int
	Calls   int
	// Unended are replies that were in flight or held, and are in the file as abandoned.
	Unended int
}

// Export writes conversations in the order of their keys, each as it was at one moment. An id that there is no conversation
// of is an error, which comes before the end of the file.
func Export(ctx context.Context, from turns.ArchiveReader, to io.Writer, s Selection) (Exported, error) {
	e := exporter{from: from, to: bufio.NewWriterSize(to, 64<<10), selection: s, missing: map[turns.ConversationID]bool{}}
	for _, id := range s.Conversations {
		e.missing[id] = true
	}
	if err := e.all(ctx); err != nil {
		return e.count, errors.Join(err, e.to.Flush())
	}
	return e.count, e.to.Flush()
}

type exporter struct {
	from      turns.ArchiveReader
	to        *bufio.Writer
	selection Selection
	missing   map[turns.ConversationID]bool
	count     Exported
}

func (e *exporter) all(ctx context.Context) error {
	if err := writeLine(e.to, headerLine{kindHeader, Version}); err != nil {
		return err
	}
	err := turns.EachArchiveName(ctx, e.from, func(name turns.ArchiveName) error {
		if !e.selection.has(name) {
			return nil
		}
		delete(e.missing, name.ID)
		return e.conversation(ctx, name)
	})
	if err != nil {
		return err
	}
	for _, id := range e.selection.Conversations {
		if e.missing[id] {
			return fmt.Errorf("%s: %w", id, turns.NotFound("conversation", "--conversation"))
		}
	}
	return writeLine(e.to, trailerLine{kindTrailer, e.count.Conversations})
}

func (s Selection) has(name turns.ArchiveName) bool {
	return (s.Tenant == "" || s.Tenant == name.Tenant) && (len(s.Conversations) == 0 || slices.Contains(s.Conversations, name.ID))
}

func (e *exporter) conversation(ctx context.Context, name turns.ArchiveName) error {
	end := endLine{Kind: kindEnd}
	err := e.from.ReadArchived(ctx, name.Key, func(c turns.ArchivedConversation) error {
		if !c.DeletedAt.IsZero() {
			e.count.Deleted++
		}
		return writeLine(e.to, conversationLine{kindConversation, c})
	}, func(r turns.ArchivedRecord) error {
		end.add(r)
		e.note(r)
		return writeLine(e.to, recordLine(r))
	})
	if errors.Is(err, turns.ErrNotFound) {
		return nil // its mark was removed since
	}
	if err != nil {
		return fmt.Errorf("conversation %s: %w", name.ID, err)
	}
	e.count.Conversations++
	return writeLine(e.to, end)
}

func (e *exporter) note(r turns.ArchivedRecord) {
	switch {
	case r.Call != nil:
		e.count.Calls++
	case r.Row != nil && r.Row.Role == turns.RoleUser:
		e.count.Turns++
	case r.Row != nil:
		e.count.Replies++
		if r.Unended {
			e.count.Unended++
		}
	}
}
