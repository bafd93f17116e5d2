package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/turnd/turnd/turns"
)

// Options say how a file is imported.
type Options struct {
	// Tenant, if not empty, is the one that all conversations are put under instead of their own.
	Tenant turns.Tenant
	// Dry does all but write.
	Dry bool
	// Refused hears of each conversation that is stored with other rows; nil if nobody wants to.
	Refused func(error)
}

// Imported counts what became of the conversations of a file.
type Imported struct {
	// Written are those that were not there, Already those that were there just so, and Refused those that are there with
	// other rows and were left as they are.
	Written int
	Already int
	Refused int
	Turns   int
	Replies int
	Calls   int
}

// Import stores the conversations of a file, each in one transaction. One that is there already with the same rows is
// passed over, and one that is there with other rows is refused; then the others go on. A line that is wrong ends the
// import with a LineError: nothing of its conversation is stored, all before it is, and the same file can be imported
// again once it is mended.
func Import(ctx context.Context, to turns.Archive, from io.Reader, o Options) (Imported, error) {
	i := importer{to: to, lines: newLines(from), options: o}
	return i.count, i.all(ctx)
}

type importer struct {
	to      turns.Archive
	lines   *lines
	options Options
	count   Imported
}

func (i *importer) all(ctx context.Context) error {
	if err := i.header(); err != nil {
		return err
	}
	for seen := 0; ; seen++ {
		line, err := i.lines.next()
		if errors.Is(err, io.EOF) {
			return i.lines.problem("is missing: the file ends before its last line, so it is cut off")
		}
		if err != nil {
			return err
		}
		kind, err := i.lines.kind(line)
		switch {
		case err != nil:
			return err
		case kind == kindTrailer:
			return i.trailer(line, seen)
		case kind != kindConversation:
			return &LineError{Line: i.lines.number, Field: "kind", Problem: "must be a conversation's beginning here, or the file's end"}
		}
		if err := i.conversation(ctx, line); err != nil {
			return err
		}
	}
}

func (i *importer) header() error {
	line, err := i.lines.next()
	if errors.Is(err, io.EOF) {
		return i.lines.problem("is missing: the file is empty")
	}
	if err != nil {
		return err
	}
	var h headerLine
	kind, err := i.lines.kind(line)
	if err == nil && kind == kindHeader {
		err = readLine(i.lines.number, line, &h)
	}
	switch {
	case err != nil:
		return err
	case kind != kindHeader:
		return &LineError{Line: i.lines.number, Field: "kind", Problem: "is not that of the first line of an archive"}
	case h.Version != Version:
		return &LineError{Line: i.lines.number, Field: "version", Problem: fmt.Sprintf("is %d, and this build reads %d", h.Version, Version)}
	}
	return nil
}

// trailer checks that the file has all its conversations and ends there.
func (i *importer) trailer(line []byte, seen int) error {
	var t trailerLine
	if err := readLine(i.lines.number, line, &t); err != nil {
		return err
	}
	if t.Conversations != seen {
		return &LineError{Line: i.lines.number, Field: "conversations", Problem: fmt.Sprintf("is %d, and %d were there: lines are missing", t.Conversations, seen)}
	}
	if _, err := i.lines.next(); !errors.Is(err, io.EOF) {
		return i.lines.problem("comes after the end of the archive")
	}
	return nil
}

// conversation imports one that begins with a line.
func (i *importer) conversation(ctx context.Context, line []byte) error {
	begins := i.lines.number
	var head conversationLine
	if err := readLine(begins, line, &head); err != nil {
		return err
	}
	c := head.ArchivedConversation
	if i.options.Tenant != "" {
		c.Tenant = i.options.Tenant
	}
	check, err := newChecker(begins, &c)
	if err != nil {
		return err
	}
	r := records{lines: i.lines, check: check, sum: newSum(c), tenant: i.options.Tenant}
	written, err := i.to.WriteArchived(ctx, c, r.all(ctx), i.options.Dry)
	switch {
	case err != nil:
		return refusal(begins, err)
	case written:
		i.count.Written++
		i.count.Turns, i.count.Replies, i.count.Calls = i.count.Turns+r.turns, i.count.Replies+r.end.Rows-r.turns, i.count.Calls+r.end.Calls
		return nil
	}
	for _, err := range r.all(ctx) {
		if err != nil {
			return err
		}
	}
	return i.compare(ctx, begins, c, r.sum)
}

// refusal names the line of a record that the database refused.
func refusal(begins int, err error) error {
	var refused *turns.RefusedRecord
	if !errors.As(err, &refused) {
		return err
	}
	if refused.Line != 0 {
		begins = refused.Line
	}
	return &LineError{Line: begins, Problem: "contradicts the lines before it: a second reply that is live, a number or an id that is taken, " +
		"or a value that no such row has", cause: err}
}

// compare tells a conversation that is stored just so from one that is stored with other rows.
func (i *importer) compare(ctx context.Context, begins int, c turns.ArchivedConversation, file *sum) error {
	var stored *sum
	err := i.to.ReadArchived(ctx, c.Key(), func(c turns.ArchivedConversation) error {
		stored = newSum(c)
		return nil
	}, func(r turns.ArchivedRecord) error { return stored.add(r) })
	if err != nil {
		return fmt.Errorf("read conversation %s, which is there already: %w", c.ID, err)
	}
	if stored.equal(file) {
		i.count.Already++
		return nil
	}
	i.count.Refused++
	if i.options.Refused != nil {
		i.options.Refused(&LineError{Line: begins, Field: "conversation_id",
			Problem: fmt.Sprintf("%s is stored with other rows, and was left as it is", c.ID)})
	}
	return nil
}

// records are the lines of one conversation up to its end.
type records struct {
	lines *lines
	check *checker
	sum   *sum
	end   endLine
	turns int
	// tenant is what turns in line are to be answered under; empty: as they were.
	tenant turns.Tenant
}

// all reads them one by one. An error is the last that it gives.
func (r *records) all(ctx context.Context) iter.Seq2[turns.ArchivedRecord, error] {
	return func(yield func(turns.ArchivedRecord, error) bool) {
		for {
			record, ended, err := r.next(ctx)
			if ended && err == nil {
				return
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func (r *records) next(ctx context.Context) (record turns.ArchivedRecord, ended bool, err error) {
	if err := ctx.Err(); err != nil {
		return record, false, err
	}
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		return record, false, r.lines.problem("is missing: the file ends inside a conversation")
	}
	if err != nil {
		return record, false, err
	}
	kind, err := r.lines.kind(line)
	if err != nil {
		return record, false, err
	}
	if kind == kindEnd {
		var said endLine
		if err := readLine(r.lines.number, line, &said); err != nil {
			return record, true, err
		}
		return record, true, r.ended(said)
	}
	if record, err = readRecord(r.lines.number, kind, line); err != nil {
		return record, false, err
	}
	if err := r.check.record(record); err != nil {
		return record, false, err
	}
	if err := moveTo(record.Row, r.tenant); err != nil {
		return record, false, err
	}
	r.end.add(record)
	if kind == kindTurn {
		r.turns++
	}
	return record, false, r.sum.add(record)
}

func (r *records) ended(said endLine) error {
	r.end.Kind = said.Kind
	if said != r.end {
		return r.lines.problem(fmt.Sprintf("says %d defaults, %d rows and %d calls, and there were %d, %d and %d; or counts takeovers or repeats otherwise: lines are missing",
			said.Defaults, said.Rows, said.Calls, r.end.Defaults, r.end.Rows, r.end.Calls))
	}
	return r.check.ended(r.lines.number)
}

// moveTo has a turn in line answered under another tenant.
func moveTo(row *turns.ArchivedRow, tenant turns.Tenant) error {
	if row == nil || row.Waiting == "" || tenant == "" {
		return nil
	}
	w, err := turns.DecodeWaiting([]byte(row.Waiting))
	if err != nil {
		return err
	}
	w.Caller.Tenant = tenant
	moved, err := turns.EncodeWaiting(w)
	row.Waiting = turns.RawJSON(moved)
	return err
}

// readRecord reads a line that is neither a beginning nor an end.
func readRecord(number int, kind string, line []byte) (turns.ArchivedRecord, error) {
	switch kind {
	case kindDefaults:
		var l defaultsLine
		err := readLine(number, line, &l)
		return turns.ArchivedRecord{Line: number, Defaults: &l.ArchivedDefaults}, err
	case kindTurn, kindReply:
		var l rowLine
		err := readLine(number, line, &l)
		l.Role = turns.RoleUser
		if kind == kindReply {
			l.Role = turns.RoleAssistant
		}
		return turns.ArchivedRecord{Line: number, Row: &l.ArchivedRow}, err
	case kindCall:
		var l callLine
		err := readLine(number, line, &l)
		return turns.ArchivedRecord{Line: number, Call: &l.ArchivedCall}, err
	}
	return readStory(number, kind, line)
}

// readStory reads a line of who had a reply, or of how often a turn came again.
func readStory(number int, kind string, line []byte) (turns.ArchivedRecord, error) {
	switch kind {
	case kindTakeover:
		var l takeoverLine
		err := readLine(number, line, &l)
		return turns.ArchivedRecord{Line: number, Takeover: &l.ArchivedTakeover}, err
	case kindRepeats:
		var l repeatsLine
		err := readLine(number, line, &l)
		return turns.ArchivedRecord{Line: number, Repeats: &l.ArchivedRepeats}, err
	}
	return turns.ArchivedRecord{}, &LineError{Line: number, Field: "kind", Problem: "is none that a conversation has"}
}

// sum is a digest of a conversation and its records.
type sum struct {
	digest hash.Hash
	err    error
}

// newSum begins with the conversation. What it has spent up to where is bookkeeping, which a reader may bring up to date.
func newSum(c turns.ArchivedConversation) *sum {
	s := &sum{digest: sha256.New()}
	c.SpentTurns, c.SpentTokens, c.SpentMicros, c.SpentUS, c.SpentThrough = 0, 0, 0, 0, turns.CallID{}
	s.err = writeLine(s.digest, conversationLine{kindConversation, c})
	return s
}

func (s *sum) add(r turns.ArchivedRecord) error { return writeLine(s.digest, recordLine(r)) }

func (s *sum) equal(other *sum) bool {
	return s.err == nil && other.err == nil && string(s.digest.Sum(nil)) == string(other.digest.Sum(nil))
}
