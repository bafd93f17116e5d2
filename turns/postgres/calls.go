package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// A call to add is a part of a statement's items: callArrays are its parameters and callNames the columns they become, and
// callOfItem are those columns of item i, counted from 1. A statement with many columns takes them so: unnest builds a table
// for each array first.
// openColumns are what a new row of the ledger is made of: what it takes from its reply, and then fromCall.
const (
	callArrays = ` @call::uuid[], @number::int[], @first::bool[], @layer::text[], @idempotency_key::text[], @request_bytes::bigint[],
		@call_endpoint::text[], @call_provider::text[], @call_model::text[], @call_provider_model::text[],
		@credential::text[], @call_hash::bytea[], @call_builder::int[], @call_body::bytea[], @unsent::bool[]`

	callNames = `call_id, number, first, layer, idempotency_key, request_bytes, call_endpoint, call_provider, call_model,
		call_provider_model, credential, call_hash, call_builder, call_body, unsent`

	callOfItem = `
		(@call::uuid[])[i] AS call_id, (@number::int[])[i] AS number, (@first::bool[])[i] AS first,
		(@layer::text[])[i] AS layer, (@idempotency_key::text[])[i] AS idempotency_key,
		(@request_bytes::bigint[])[i] AS request_bytes, (@call_endpoint::text[])[i] AS call_endpoint,
		(@call_provider::text[])[i] AS call_provider, (@call_model::text[])[i] AS call_model,
		(@call_provider_model::text[])[i] AS call_provider_model, (@credential::text[])[i] AS credential,
		(@call_hash::bytea[])[i] AS call_hash, (@call_builder::int[])[i] AS call_builder,
		(@call_body::bytea[])[i] AS call_body, (@unsent::bool[])[i] AS unsent`

	openColumns = `conversation_key, tenant, conversation_id, turn_id, generation, reply_id, epoch, create_time, call_id,
		number, first, layer, endpoint, provider, model, provider_model, credential, idempotency_key, request_hash, builder_version,
		request_bytes, request_body, submitted_at`

	fromCall = ` i.call_id, i.number, i.first, i.layer, i.call_endpoint, i.call_provider, i.call_model, i.call_provider_model,
		i.credential, i.idempotency_key, i.call_hash, i.call_builder, i.request_bytes, i.call_body,
		CASE WHEN NOT i.unsent THEN clock_timestamp() END`
)

// toCall moves a reply's row to the route and the request of a call of item i, which is its newest. A response id belongs
// to the call before.
const toCall = `
		endpoint = CASE WHEN i.newest THEN i.call_endpoint ELSE t.endpoint END,
		provider = CASE WHEN i.newest THEN i.call_provider ELSE t.provider END,
		provider_model = CASE WHEN i.newest THEN i.call_provider_model ELSE t.provider_model END,
		request_hash = CASE WHEN i.newest THEN i.call_hash ELSE t.request_hash END,
		builder_version = CASE WHEN i.newest THEN i.call_builder ELSE t.builder_version END,
		provider_response_id = CASE WHEN i.newest THEN '' ELSE t.provider_response_id END`

func addCalls(args pgx.NamedArgs, calls []turns.NewCall) {
	args["call"] = column(calls, func(c *turns.NewCall) zeronull.UUID { return zeronull.UUID(c.ID.UUID) })
	args["number"] = column(calls, func(c *turns.NewCall) int { return c.Number })
	args["first"] = column(calls, func(c *turns.NewCall) bool { return c.First })
	args["layer"] = column(calls, func(c *turns.NewCall) string { return string(c.MadeBy()) })
	args["idempotency_key"] = column(calls, func(c *turns.NewCall) string { return c.Key })
	args["request_bytes"] = column(calls, func(c *turns.NewCall) int { return c.RequestBytes })
	args["call_endpoint"] = column(calls, func(c *turns.NewCall) string { return c.Route.Endpoint })
	args["call_provider"] = column(calls, func(c *turns.NewCall) string { return c.Route.Provider })
	args["call_model"] = column(calls, func(c *turns.NewCall) string { return c.Route.Model })
	args["call_provider_model"] = column(calls, func(c *turns.NewCall) string { return c.Route.ProviderModel })
	args["credential"] = column(calls, func(c *turns.NewCall) string { return c.Route.Credential })
	args["call_hash"] = column(calls, func(c *turns.NewCall) []byte { return c.RequestHash })
	args["call_builder"] = column(calls, func(c *turns.NewCall) int { return c.BuilderVersion })
	args["call_body"] = column(calls, func(c *turns.NewCall) []byte { return c.Body })
	args["unsent"] = column(calls, func(c *turns.NewCall) bool { return c.Unsent })
}
