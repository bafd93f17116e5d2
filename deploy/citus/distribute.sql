-- Spreads the tables of turnd over the nodes of a Citus cluster, by conversation. Run once, on the coordinator, as the owner
-- of the tables, after "turnd migrate" and before the first turn: psql -v ON_ERROR_STOP=1 -f distribute.sql
--
-- All that belongs to one conversation lies in one shard, since each key of these tables begins with conversation_key:
-- the indexes that decide claims, the order of a conversation and the foreign keys of turns to themselves, which are
-- deferred to the commit, are local to a shard and keep their meaning.
--
-- workers is small and is read with every sweep, so each node has all of it. A renewal of a lease is written to all nodes.
-- tenant_spending has a row a tenant, and is written once in many turns.
--
-- goose_db_version stays on the coordinator, where migrations run.

BEGIN;

SELECT create_reference_table('workers');
SELECT create_reference_table('tenant_spending');

SELECT create_distributed_table('conversations', 'conversation_key', colocate_with => 'none');
SELECT create_distributed_table('conversation_defaults', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('turns', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('reply_chunks', 'conversation_key', colocate_with => 'conversations');
SELECT create_distributed_table('provider_calls', 'conversation_key', colocate_with => 'conversations');

COMMIT;
