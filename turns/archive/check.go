package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turnd/turnd/turns"
)

// maxRows bounds the rows of one conversation, whose ids are kept in memory while it is read.
const maxRows = 1 << 20

// checker checks the lines of one conversation against those before them.
type checker struct {
	head     *turns.ArchivedConversation
	tree     tree
	waiting  map[turns.TurnID]bool // turns in line
	seq      int64
	defaults int32
	call     turns.CallID
	calls    bool                   // calls have begun, or what comes after them
	takeover turns.ArchivedTakeover // the last one
	repeat   turns.ArchivedRepeats  // the last of them
	repeats  bool                   // repeats have begun
}

// newChecker checks the conversation itself, and brings its moments into the form that is stored.
func newChecker(line int, c *turns.ArchivedConversation) (*checker, error) {
	if err := checkFields(line, c); err != nil {
		return nil, err
	}
	at := problems{line: line}
	at.demand("tenant", named(string(c.Tenant)), nameRule)
	at.demand("subject", c.Subject == "" || named(c.Subject), nameRule)
	at.demand("title", utf8.RuneCountInString(c.Title) <= maxTitle, fmt.Sprintf("is longer than %d characters", maxTitle))
	at.demand("conversation_id", !c.ID.IsZero(), "is missing")
	at.demand("labels", labelsFit(c.Labels), fmt.Sprintf("are more than %d, or one has a key that is not of 1 to %d bytes or a value beyond %d",
		turns.MaxLabels, turns.MaxLabelKey, turns.MaxLabelValue))
	at.demand("defaults_version", c.DefaultsVersion >= 1, "must be at least 1")
	at.demand("defaults_version", c.DefaultsVersion <= maxCount, "leaves no room for the next")
	at.demand("next_seq", c.NextSeq >= 1 && c.NextSeq <= maxNumber, numberRule)
	at.demand("version", c.Version >= 1 && c.Version <= maxNumber, numberRule)
	at.demand("create_time", !c.CreateTime.IsZero(), "is missing")
	at.demand("update_time", !c.UpdateTime.IsZero(), "is missing")
	at.demand("erased_at", c.ErasedAt.IsZero() || !c.DeletedAt.IsZero(), "goes with deleted_at")
	at.demand("defaults", optionsFit(c.Defaults), "can't be read")
	c.Bury()
	return &checker{head: c, tree: newTree(), waiting: map[turns.TurnID]bool{}}, at.err()
}

// record checks one record, and brings its moments into the form that is stored.
func (c *checker) record(r turns.ArchivedRecord) error {
	at := &problems{line: r.Line}
	var fields any
	var check func()
	switch {
	case r.Row != nil:
		fields, check = r.Row, func() { c.row(at, r.Row) }
	case r.Call != nil:
		fields, check = r.Call, func() { c.checkCall(at, r.Call) }
	case r.Takeover != nil:
		fields, check = r.Takeover, func() { c.checkTakeover(at, r.Takeover) }
	case r.Repeats != nil:
		fields, check = r.Repeats, func() { c.checkRepeats(at, r.Repeats) }
	default:
		fields, check = r.Defaults, func() { c.checkDefaults(at, r.Defaults) }
	}
	if err := checkFields(r.Line, fields); err != nil {
		return err
	}
	check()
	return at.err()
}

func (c *checker) checkTakeover(at *problems, o *turns.ArchivedTakeover) {
	at.demand("reply_id", c.tree.has(o.Reply.Row()) && !c.tree.isTurn(o.Reply.Row()), "is no reply of this conversation")
	at.demand("kind", !c.repeats, "comes too late: takeovers come before repeats")
	place := bytes.Compare(o.Reply.UUID[:], c.takeover.Reply.UUID[:])
	at.demand("epoch", place > 0 || place == 0 && o.Epoch > c.takeover.Epoch, "must grow from takeover to takeover of a reply, and replies by their id")
	at.demand("epoch", o.Epoch >= 2 && o.Epoch <= maxNumber, "must be one after the first")
	at.demand("from_worker", !o.From.IsZero(), "is missing")
	at.demand("to_worker", !o.To.IsZero(), "is missing")
	at.demand("create_time", !o.CreateTime.IsZero(), "is missing")
	c.takeover, c.calls = *o, true
}

func (c *checker) checkRepeats(at *problems, r *turns.ArchivedRepeats) {
	at.demand("turn_id", !r.Turn.IsZero(), "is missing")
	place := bytes.Compare(r.Turn.UUID[:], c.repeat.Turn.UUID[:])
	at.demand("layer", place > 0 || place == 0 && r.Layer > c.repeat.Layer, "must grow from one to the next of a turn, and turns by their id")
	at.demand("count", r.Count >= 1 && r.Count <= maxNumber, "must be at least 1")
	at.demand("first_time", !r.FirstTime.IsZero(), "is missing")
	at.demand("last_time", !r.LastTime.Before(r.FirstTime), "must not come before first_time")
	c.repeat, c.calls, c.repeats = *r, true, true
}

func (c *checker) checkDefaults(at *problems, d *turns.ArchivedDefaults) {
	at.demand("kind", len(c.tree.rows) == 0 && !c.calls, "comes too late: versions of defaults come before turns")
	at.demand("kind", c.head.DeletedAt.IsZero(), "is of a deleted conversation, which has none")
	at.demand("version", d.Version > c.defaults && d.Version <= c.head.DefaultsVersion, "must grow, up to the conversation's own")
	at.demand("defaults", optionsFit(d.Defaults), "can't be read")
	at.demand("create_time", !d.CreateTime.IsZero(), "is missing")
	c.defaults = d.Version
}

func (c *checker) row(at *problems, r *turns.ArchivedRow) {
	at.demand("kind", !c.calls, "comes too late: turns and replies come before calls")
	at.demand("kind", c.head.DeletedAt.IsZero(), "is of a deleted conversation, which has none")
	at.demand("id", !r.ID.IsZero() && !c.tree.has(r.ID), "is missing, or was there before")
	at.demand("seq", r.Seq > c.seq && r.Seq < c.head.NextSeq, "must grow from row to row, and stay below the conversation's next_seq")
	at.demand("kind", len(c.tree.rows) < maxRows, "is of one row too many")
	at.demand("parent_id", r.Parent != r.ID, "is the row itself")
	at.demand("generation", r.Generation >= 1 && r.Generation <= maxCount, countRule)
	at.demand("slot_version", r.SlotVersion <= maxNumber, numberRule)
	at.demand("options", optionsFit(r.Options), "can't be read")
	at.demand("create_time", !r.CreateTime.IsZero(), "is missing")
	if r.Role == turns.RoleUser {
		userTurn(at, r)
		if r.Waiting != "" {
			at.demand("waiting", len(c.waiting) < maxInLine, "is of more turns than can wait in one line")
			c.waiting[turns.TurnID(r.ID)] = true
		}
	} else {
		c.reply(at, r)
	}
	c.seq = r.Seq
	c.tree.add(at.line, r)
}

func userTurn(at *problems, r *turns.ArchivedRow) {
	at.demand("status", r.Status == "" && r.Reason == "" && r.RespondsTo.IsZero(), "is a reply's, and this is a turn")
	at.demand("input_hash", len(r.InputHash) == hashSize, fmt.Sprintf("is not of %d bytes: without it a repeat of the turn could not be told from another", hashSize))
	at.demand("waiting", r.Waiting == "" || !r.Erased, "goes with no erased turn")
	if r.Waiting != "" {
		_, err := turns.DecodeWaiting([]byte(r.Waiting))
		at.demand("waiting", err == nil, "can't be read")
	}
	if r.Erased {
		at.demand("content", r.Content == "", "was erased, so there is none")
		return
	}
	content, err := turns.DecodeContent([]byte(r.Content))
	if at.demand("content", err == nil, "is not a list of blocks"); err == nil {
		wire(at, turns.ValidateContent(content))
	}
}

func (c *checker) reply(at *problems, r *turns.ArchivedRow) {
	at.demand("responds_to", c.tree.isTurn(r.RespondsTo.Row()), "is no turn of this conversation that came before")
	at.demand("parent_id", r.Parent == r.RespondsTo.Row(), "must be the turn that it responds to")
	at.demand("status", r.Status == turns.StatusComplete || r.Status == turns.StatusAbandoned, "must be complete or abandoned: an archive holds what has ended")
	at.demand("reason", (r.Status == turns.StatusAbandoned) == (r.Reason != ""), "goes with abandoned, and must be there then")
	at.demand("attempt", r.Attempt >= 1 && r.Attempt <= maxCount, countRule)
	at.demand("epoch", r.Epoch >= 1 && r.Epoch <= maxNumber, numberRule)
	at.demand("responds_to", !c.waiting[r.RespondsTo], "is a turn that waits in line, which has no reply")
	at.demand("owner", !r.Owner.IsZero(), "is missing")
	at.demand("waiting", r.Waiting == "" && !r.Erased, "and erased are a turn's, and this is a reply")
	at.demand("end_time", !r.EndTime.IsZero(), "is missing")
	log := new(turns.Log)
	pieces, err := turns.DecodePieces([]byte(r.Content))
	if err == nil {
		log, err = turns.LogOf(pieces)
	}
	at.demand("content", err == nil, "is not a list of pieces that follow each other")
	at.demand("log_len", err != nil || log.Len() == r.LogLen, "is not the length of the content")
}

func (c *checker) checkCall(at *problems, call *turns.ArchivedCall) {
	at.demand("call_id", bytes.Compare(call.ID.UUID[:], c.call.UUID[:]) > 0, "must grow from call to call")
	at.demand("kind", c.takeover.Reply.IsZero() && !c.repeats, "comes too late: calls come before takeovers and repeats")
	at.demand("class", call.Class != "", "is missing: an archive holds what has ended")
	at.demand("create_time", !call.CreateTime.IsZero(), "is missing")
	at.demand("end_time", !call.EndTime.IsZero(), "is missing")
	call.Layer = call.MadeBy() // an older archive does not say it
	at.demand("layer", slices.Contains(turns.Layers(), call.Layer), "is none of the layers")
	c.call, c.calls = call.ID, true
}

// ended checks what rows name of each other, and the conversation of its rows.
func (c *checker) ended(line int) error {
	if err := c.tree.check(); err != nil {
		return err
	}
	at := problems{line: line}
	at.demand("leaf_id", c.tree.has(c.head.Leaf) || c.head.Leaf.IsZero(), "of the conversation is none of its rows")
	at.demand("last_turn_id", c.tree.isTurn(c.head.LastTurn.Row()) || c.head.LastTurn == turns.TurnID{}, "of the conversation is none of its turns")
	return at.err()
}

// problems keeps the first problem of a line.
type problems struct {
	line  int
	first *LineError
}

func (p *problems) demand(field string, holds bool, problem string) {
	if !holds && p.first == nil {
		p.first = &LineError{Line: p.line, Field: field, Problem: problem}
	}
}

func (p *problems) err() error {
	if p.first == nil {
		return nil
	}
	return p.first
}

func labelsFit(labels map[string]string) bool {
	for k, v := range labels {
		if len(k) == 0 || len(k) > turns.MaxLabelKey || len(v) > turns.MaxLabelValue || strings.ContainsRune(k+v, 0) {
			return false
		}
	}
	return len(labels) <= turns.MaxLabels
}

func optionsFit(options turns.RawJSON) bool {
	_, err := turns.DecodeOptions([]byte(options))
	return err == nil
}

// The years that every engine can store.
var (
	earliest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// checkFields checks what holds of every field: no number is negative, no text has a NUL, which one of the engines could not
// store, and a moment is one of microseconds.
func checkFields(line int, record any) error {
	at := problems{line: line}
	names, values := turns.ArchiveColumns(record)
	for i, value := range values {
		switch v := value.(type) {
		case *time.Time:
			*v = v.UTC().Truncate(time.Microsecond)
			at.demand(names[i], v.IsZero() || v.After(earliest) && v.Before(latest), "is out of range")
		case *turns.RawJSON:
			at.demand(names[i], *v == "" || json.Valid([]byte(*v)), "is not JSON")
		default:
			field := reflect.ValueOf(value).Elem()
			at.demand(names[i], !field.CanInt() || field.Int() >= 0, "must not be negative")
			at.demand(names[i], field.Kind() != reflect.String || !strings.ContainsRune(field.String(), 0), "holds a NUL character")
		}
	}
	return at.err()
}
