package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/turnd/turnd/llm/scripted"
)

// entry is a row of the ledger.
type entry struct {
	turn, key, endpoint, model string
	class, source, cause       string
	input, output, wasted      int
}

// ledger reads the calls of a Postgres, as they were made.
func (e engine) ledger(ctx context.Context) ([]entry, error) {
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT c.turn_id::text, c.idempotency_key, c.endpoint, c.provider_model, c.class, c.token_source,
			c.waste_cause, c.input_tokens, c.output_tokens, c.wasted_tokens
		FROM provider_calls c JOIN turns r ON r.conversation_key = c.conversation_key AND r.id = c.reply_id
		ORDER BY r.attempt, c.number, c.create_time`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []entry
	for rows.Next() {
		var c entry
		err := rows.Scan(&c.turn, &c.key, &c.endpoint, &c.model, &c.class, &c.source, &c.cause, &c.input, &c.output, &c.wasted)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// sent reports whether the provider has seen the call.
func (c entry) sent() bool { return c.class != "not_sent" }

// pair is a call as the ledger has it and as the provider counted it.
type pair struct {
	entry
	counted scripted.Call
}

// pairs puts each row of the ledger beside the provider's own record of the same request. A key's requests are told apart
// by their order, which is the same on both sides, since a turn makes one after the other. A request without a row, and a row
// of a request that never came, are errors.
func pairs(ledger []entry, calls []scripted.Call) ([]pair, error) {
	byKey := map[string][]scripted.Call{}
	for _, c := range calls {
		byKey[c.IdempotencyKey] = append(byKey[c.IdempotencyKey], c)
	}
	var all []pair
	for _, c := range ledger {
		if !c.sent() {
			continue
		}
		counted := byKey[c.key]
		if len(counted) == 0 {
			return nil, fmt.Errorf("the ledger has a call of %s (%s) that the provider never saw", c.model, c.class)
		}
		all = append(all, pair{c, counted[0]})
		byKey[c.key] = counted[1:]
	}
	for _, left := range byKey {
		if len(left) > 0 {
			return nil, fmt.Errorf("the provider counted %d requests for %s that are not on the ledger", len(left), left[0].Model)
		}
	}
	return all, nil
}
