package main

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// treeRecord is how a session ended, in names instead of ids: what clients read of the tree, and the ledger.
type treeRecord struct {
	name           string
	turns, replies int
	tree, ledger   []string
	// inputs are the input tokens of the calls. They differ from wire to wire, as one says in words what another has a
	// field for.
	wire   string
	inputs []string
}

// equal demands the same tree, texts and ledger, and on the same wire the same input tokens.
func (r *treeRecord) equal(o *treeRecord) error {
	for _, side := range [][2][]string{{r.tree, o.tree}, {r.ledger, o.ledger}} {
		if err := sameLines(side[0], side[1]); err != nil {
			return err
		}
	}
	if r.wire == o.wire {
		return sameLines(r.inputs, o.inputs)
	}
	return nil
}

func sameLines(want, got []string) error {
	for i := range max(len(want), len(got)) {
		a, b := "nothing", "nothing"
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			return fmt.Errorf("%q instead of %q", b, a)
		}
	}
	return nil
}

func (r *treeRecord) print() {
	fmt.Println("the tree, on each engine and wire:")
	for _, line := range r.tree {
		fmt.Println("  " + line)
	}
	fmt.Println("the ledger:")
	for _, line := range r.ledger {
		fmt.Println("  " + line)
	}
}

// record reads what the session came to.
func (s *treeScene) record(wire string, e engine) (*treeRecord, error) {
	r := &treeRecord{name: wire + " on " + e.name, wire: wire, turns: len(s.turns)}
	names := map[string]string{"": "-"}
	for _, t := range s.turns {
		names[t.in.GetTurnId()] = t.name
		for i, reply := range t.replies {
			names[reply] = fmt.Sprintf("%s/%d", t.name, i+1)
		}
	}
	for _, t := range s.turns {
		if err := s.recordTurn(r, t, names); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if err := s.recordPath(r, names); err != nil {
		return nil, err
	}
	return r, s.recordLedger(r, e, names)
}

func (s *treeScene) recordTurn(r *treeRecord, t *treeTurn, names map[string]string) error {
	got, err := s.laptop.turns.GetTurn(s.ctx, &turnsv1.GetTurnRequest{ConversationId: s.conversation,
		Target: &turnsv1.GetTurnRequest_TurnId{TurnId: t.in.GetTurnId()}})
	if err != nil {
		return err
	}
	r.tree = append(r.tree, fmt.Sprintf("%s below %s, generation %d", t.name, names[got.GetTurn().GetParentId()], got.GetTurn().GetGeneration()))
	for _, reply := range got.GetReplies() {
		r.replies++
		r.tree = append(r.tree, fmt.Sprintf("  %s: generation %d %s%s%s %d bytes %s", names[reply.GetReplyId()], reply.GetGeneration(),
			shortName(reply.GetStatus()), shortName(reply.GetAbandonReason()), shortName(reply.GetStopReason()), reply.GetLength(),
			contentSum(reply.GetContent())))
	}
	return nil
}

// shortName is an enum's value with a space, and nothing for the unspecified one.
func shortName(value fmt.Stringer) string {
	name := value.String()
	for _, prefix := range []string{"REPLY_STATUS_", "ABANDON_REASON_", "STOP_REASON_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name == "UNSPECIFIED" {
		return ""
	}
	return strings.ToLower(name) + " "
}

// contentSum tells contents apart: kinds of blocks, and a digest of all they say.
func contentSum(content []*turnsv1.Block) string {
	sum := sha256.New()
	var kinds []string
	for _, b := range content {
		switch k := b.GetKind().(type) {
		case *turnsv1.Block_Text:
			kinds = append(kinds, "text")
			fmt.Fprintf(sum, "text %s\n", k.Text.GetText())
		case *turnsv1.Block_ToolUse:
			kinds = append(kinds, "tool_use")
			fmt.Fprintf(sum, "tool %s %s\n", k.ToolUse.GetName(), k.ToolUse.GetInputJson())
		default:
			kinds = append(kinds, fmt.Sprintf("%T", k))
		}
	}
	return fmt.Sprintf("%s %x", strings.Join(kinds, "+"), sum.Sum(nil)[:4])
}

// recordPath reads the path to the current leaf with the siblings on it.
func (s *treeScene) recordPath(r *treeRecord, names map[string]string) error {
	got, err := s.phone.turns.ListTurns(s.ctx, &turnsv1.ListTurnsRequest{ConversationId: s.conversation})
	if err != nil {
		return err
	}
	for _, entry := range slices.Backward(got.GetEntries()) {
		var siblings []string
		for _, id := range entry.GetSiblingTurnIds() {
			siblings = append(siblings, names[id])
		}
		r.tree = append(r.tree, fmt.Sprintf("path: %s, shown %s of %d, siblings %s", names[entry.GetTurn().GetTurnId()],
			names[entry.GetReply().GetReplyId()], entry.GetReplyCount(), strings.Join(siblings, ", ")))
	}
	return nil
}

// recordLedger reads the ledger, and holds what was reported to the provider's own count of the same request.
func (s *treeScene) recordLedger(r *treeRecord, e engine, names map[string]string) error {
	counted, err := s.p.records(s.lab)
	if err != nil {
		return err
	}
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	id := map[string]string{"sqlite": "lower(hex(reply_id))", "pgx": "encode(uuid_send(reply_id), 'hex')"}[e.driver]
	rows, err := db.QueryContext(s.ctx, `SELECT `+id+`, number, first, class, token_source, input_tokens, output_tokens, wasted_tokens
		FROM provider_calls ORDER BY create_time, call_id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var reply, class, source string
		var number, input, output, wasted int
		var first bool
		if err := rows.Scan(&reply, &number, &first, &class, &source, &input, &output, &wasted); err != nil {
			return err
		}
		n := len(r.ledger)
		if n >= len(counted) {
			return errors.New("the ledger has more calls than the provider")
		}
		if source == "reported" && (counted[n].InputTokens != input || counted[n].OutputTokens != output) {
			return fmt.Errorf("call %d: %d+%d tokens on the ledger, and the provider counted %d+%d", n, input, output,
				counted[n].InputTokens, counted[n].OutputTokens)
		}
		spent := fmt.Sprintf("output %d", output)
		if source != "reported" {
			spent = fmt.Sprintf("output %t, wasted %t", output > 0, wasted > 0)
		}
		r.ledger = append(r.ledger, fmt.Sprintf("%s call %d first=%t %s %s %s", names[dashed(reply)], number, first, class, source, spent))
		r.inputs = append(r.inputs, fmt.Sprint(source, " ", input))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(r.ledger) != len(counted) {
		return fmt.Errorf("%d calls on the ledger, and the provider counted %d", len(r.ledger), len(counted))
	}
	return nil
}

// dashed is a UUID of 32 digits as the wire writes it.
func dashed(hex string) string {
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]
}
