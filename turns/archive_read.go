package turns

import "context"

// namesPage is how many names of conversations are read at a time.
const namesPage = 256

// EachArchiveName goes through all conversations in the order of their keys, and ends with the first error.
func EachArchiveName(ctx context.Context, from ArchiveReader, do func(ArchiveName) error) error {
	return inPages(ConversationKey{}, func(after ConversationKey) ([]ArchiveName, error) {
		return from.ArchiveNames(ctx, after, namesPage)
	}, func(name *ArchiveName) (ConversationKey, error) { return name.Key, do(*name) })
}

// ArchivePages reads one conversation for ReadArchive, as it was at one moment. A page is what comes next after a place, in
// the order of an archive; an empty one is the end.
type ArchivePages interface {
	DefaultsAfter(version int32) ([]ArchivedDefaults, error)
	RowsAfter(seq int64) ([]ArchivedRow, error)
	CallsAfter(id CallID) ([]ArchivedCall, error)
	TakeoversAfter(reply ReplyID, epoch int64) ([]ArchivedTakeover, error)
	RepeatsAfter(turn TurnID, layer Layer) ([]ArchivedRepeats, error)
	// CallsOf reads the calls of a reply, and LogOf what is stored of its log; it has not ended.
	CallsOf(reply *ArchivedRow) ([]ArchivedCall, error)
	LogOf(reply *ArchivedRow) ([]Piece, error)
}

// ReadArchive gives a conversation and then its records, as ArchiveReader says. It ends with the first error.
func ReadArchive(pages ArchivePages, c ArchivedConversation, head func(ArchivedConversation) error, record func(ArchivedRecord) error) error {
	c.Bury()
	if err := head(c); err != nil {
		return err
	}
	r := archiveReader{pages, unended{}, record}
	if c.DeletedAt.IsZero() {
		err := inPages(0, pages.DefaultsAfter, func(d *ArchivedDefaults) (int32, error) {
			return d.Version, record(ArchivedRecord{Defaults: d})
		})
		if err != nil {
			return err
		}
		if err := inPages(0, pages.RowsAfter, r.row); err != nil {
			return err
		}
	}
	if err := inPages(CallID{}, pages.CallsAfter, r.call); err != nil {
		return err
	}
	return readArchivedStories(pages, c, record)
}

// readArchivedStories gives who had a conversation's replies, and how often its turns came again. The latter is left of a
// deleted one too.
func readArchivedStories(pages ArchivePages, c ArchivedConversation, record func(ArchivedRecord) error) error {
	type takeoverPlace struct {
		reply ReplyID
		epoch int64
	}
	type repeatPlace struct {
		turn  TurnID
		layer Layer
	}
	if c.DeletedAt.IsZero() {
		err := inPages(takeoverPlace{}, func(p takeoverPlace) ([]ArchivedTakeover, error) { return pages.TakeoversAfter(p.reply, p.epoch) },
			func(o *ArchivedTakeover) (takeoverPlace, error) {
				return takeoverPlace{o.Reply, o.Epoch}, record(ArchivedRecord{Takeover: o})
			})
		if err != nil {
			return err
		}
	}
	return inPages(repeatPlace{}, func(p repeatPlace) ([]ArchivedRepeats, error) { return pages.RepeatsAfter(p.turn, p.layer) },
		func(r *ArchivedRepeats) (repeatPlace, error) {
			return repeatPlace{r.Turn, r.Layer}, record(ArchivedRecord{Repeats: r})
		})
}

// inPages has take do each of what is read page by page. It says where that stands.
func inPages[T, Place any](after Place, read func(Place) ([]T, error), take func(*T) (Place, error)) error {
	for {
		page, err := read(after)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if after, err = take(&page[i]); err != nil {
				return err
			}
		}
	}
}

// archiveReader hands on the rows and calls of one conversation, those that have not ended as if they had.
type archiveReader struct {
	pages   ArchivePages
	unended unended
	record  func(ArchivedRecord) error
}

func (r archiveReader) row(row *ArchivedRow) (seq int64, err error) {
	open := row.Status.stoppable()
	if open {
		if err := r.end(row); err != nil {
			return 0, err
		}
	}
	return row.Seq, r.record(ArchivedRecord{Row: row, Unended: open})
}

func (r archiveReader) end(row *ArchivedRow) error {
	log, err := r.pages.LogOf(row)
	if err != nil {
		return err
	}
	calls, err := r.pages.CallsOf(row)
	if err != nil {
		return err
	}
	return r.unended.end(row, log, calls)
}

func (r archiveReader) call(c *ArchivedCall) (CallID, error) {
	r.unended.close(c)
	return c.ID, r.record(ArchivedRecord{Call: c})
}
