-- Spreads the tables of turnd over the nodes of a Citus cluster, by conversation. Run once, on the coordinator, as the owner
-- of the tables, after "turnd migrate" and before the first turn: psql -v ON_ERROR_STOP=1 -f distribute.sql
--
-- All that belongs to one conversation lies in one shard, since each key of these tables begins with conversation_key:
-- the indexes that decide claims, the order of a conversation and the foreign keys of turns to themselves, which are
-- deferred to the commit, are local to a shard and keep their meaning.
--
-- workers is small and is read with every sweep, so each node has all of it. A renewal of a lease is written to all nodes.
-- tenant_spending has a row a tenant, and is written once in many turns. So that a claim may charge them in its own transaction,
-- each node has all quotas, and a claim under quotas writes one or two rows of them to all nodes. api_keys and suspensions are
-- read by whatever node is asked, and seldom written.
--
-- goose_db_version stays on the coordinator, where migrations run.

BEGIN;

SELECT create_reference_table('workers');
SELECT create_reference_table('tenant_spending');
SELECT create_reference_table('api_keys');
SELECT create_reference_table('suspensions');
SELECT create_reference_table('quotas');

SELECT create_distributed_table('conversations', 'conversation_key', colocate_with => 'none');
SELECT create_distributed_table('conversation_defaults', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('turns', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('reply_chunks', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('provider_calls', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('reply_takeovers', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('turn_repeats', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('quota_reservations', 'conversation_key', colocate_with => 'conversations');

COMMIT;
