package postgres

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// ledgerOfReply is a column that holds the calls of reply t in their order, without their bodies.
const ledgerOfReply = `	(SELECT json_agg(json_build_object('id', p.call_id, 'number', p.number, 'first', p.first, 'layer', p.layer, 'key', p.idempotency_key,
			'endpoint', p.endpoint, 'provider', p.provider, 'model', p.model, 'provider_model', p.provider_model,
			'credential', p.credential, 'hash', encode(p.request_hash, 'base64'), 'builder', p.builder_version,
			'bytes', p.request_bytes, 'has_body', p.request_body IS NOT NULL, 'submitted', p.submitted_at IS NOT NULL,
			'session', p.session, 'response', p.provider_response_id,
			'age_us', (EXTRACT(EPOCH FROM clock_timestamp() - p.create_time) * 1000000)::bigint,
			'closed', p.class <> '', 'input', p.input_tokens,
			'cache_read', p.cache_read_tokens, 'cache_write', p.cache_write_tokens, 'output', p.output_tokens,
			'reasoning', p.reasoning_tokens, 'source', p.token_source, 'wasted', p.wasted_tokens, 'cost', p.cost_micros)
			ORDER BY p.number)
		FROM provider_calls p WHERE p.conversation_key = t.conversation_key AND p.reply_id = t.id) AS ledger`

// ledgerCall is a row of the ledger as ledgerOfReply puts it in JSON.
type ledgerCall struct {
	ID            uuid.UUID         `json:"id"`
	Number        int               `json:"number"`
	First         bool              `json:"first"`
	Layer         turns.Layer       `json:"layer"`
	Key           string            `json:"key"`
	Endpoint      string            `json:"endpoint"`
	Provider      string            `json:"provider"`
	Model         string            `json:"model"`
	ProviderModel string            `json:"provider_model"`
	Credential    string            `json:"credential"`
	Hash          []byte            `json:"hash"`
	Builder       int               `json:"builder"`
	Bytes         int               `json:"bytes"`
	HasBody       bool              `json:"has_body"`
	Submitted     bool              `json:"submitted"`
	Session       string            `json:"session"`
	Response      string            `json:"response"`
	AgeUs         int64             `json:"age_us"`
	Closed        bool              `json:"closed"`
	Input         int64             `json:"input"`
	CacheRead     int64             `json:"cache_read"`
	CacheWrite    int64             `json:"cache_write"`
	Output        int64             `json:"output"`
	Reasoning     int64             `json:"reasoning"`
	Source        turns.TokenSource `json:"source"`
	Wasted        int64             `json:"wasted"`
	Cost          int64             `json:"cost"`
}

func (c *ledgerCall) usage() turns.Usage {
	return turns.Usage{Input: c.Input, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite,
		Output: c.Output, Reasoning: c.Reasoning, Source: c.Source, Wasted: c.Wasted, CostMicros: c.Cost, Calls: 1}
}

func (c *ledgerCall) openCall() turns.OpenCall {
	return turns.OpenCall{
		ID: turns.CallID{UUID: c.ID}, Number: c.Number, First: c.First, Layer: c.Layer, Key: c.Key, Endpoint: c.Endpoint, Provider: c.Provider,
		Model: c.Model, ProviderModel: c.ProviderModel, Credential: c.Credential, RequestHash: c.Hash, BuilderVersion: c.Builder,
		RequestBytes: c.Bytes, HasBody: c.HasBody, Submitted: c.Submitted, Session: c.Session, ResponseID: c.Response,
		Age: microseconds(c.AgeUs),
	}
}

// readLedger gives a reply the usage of its closed calls, and returns its open ones. What a checkpoint has stored of the
// response belongs to the newest call.
func readLedger(data []byte, reply *turns.Reply) (open []turns.OpenCall, err error) {
	var ledger []ledgerCall
	if len(data) > 0 {
		if err := json.Unmarshal(data, &ledger); err != nil {
			return nil, fmt.Errorf("decode the ledger: %w", err)
		}
	}
	reply.Usage = turns.Usage{}
	newest := slices.MaxFunc(append(ledger, ledgerCall{}), func(a, b ledgerCall) int { return a.Number - b.Number }).Number
	for i := range ledger {
		call := &ledger[i]
		if call.Closed {
			reply.Usage = reply.Usage.Add(call.usage())
			continue
		}
		if call.Response == "" && call.Number == newest {
			call.Response = reply.ResponseID
		}
		open = append(open, call.openCall())
	}
	return open, nil
}
