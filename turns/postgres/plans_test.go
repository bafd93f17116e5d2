package postgres

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// filled is a database of 10,000 conversations with five turns each, a few of them running: 100,000 rows of turns,
// 50,000 calls, and 20 chunks for each running reply.
const filled = `
CREATE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT md5(kind || n)::uuid';
INSERT INTO workers (worker_id, lease_until, start_time) SELECT pg_temp.id('worker', n), now() + interval '1 hour', now()
	FROM generate_series(1, 4) n;
INSERT INTO conversations (conversation_key, tenant, conversation_id, next_seq, version, leaf_id, last_turn_id, create_time, update_time)
	SELECT pg_temp.id('conversation', n), 'tenant' || n % 50, pg_temp.id('conversation', n), 11, 5, pg_temp.id('reply', n * 5 + 4),
		pg_temp.id('turn', n * 5 + 4), now(), now() - n * interval '1 second' FROM generate_series(1, 10000) n;
INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, input_hash, create_time)
	SELECT pg_temp.id('conversation', n), pg_temp.id('turn', n * 5 + k), 'user',
		CASE WHEN k > 0 THEN pg_temp.id('reply', n * 5 + k - 1) END, 2 * k + 1, '[]', '\x01', now()
	FROM generate_series(1, 10000) n, generate_series(0, 4) k;
INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, status, attempt, epoch, owner, content, log_len,
	create_time, end_time, deadline_at)
	SELECT pg_temp.id('conversation', n), pg_temp.id('reply', n * 5 + k), 'assistant', pg_temp.id('turn', n * 5 + k),
		pg_temp.id('turn', n * 5 + k), 2 * k + 2, CASE WHEN live THEN 'in_flight' ELSE 'complete' END, 1, 1,
		pg_temp.id('worker', n % 4 + 1), CASE WHEN live THEN '' ELSE '[]' END, CASE WHEN live THEN 200 ELSE 0 END,
		now(), CASE WHEN NOT live THEN now() END, now() + interval '1 hour'
	FROM generate_series(1, 10000) n, generate_series(0, 4) k, LATERAL (SELECT k = 4 AND n % 50 = 0 AS live) l;
INSERT INTO reply_chunks SELECT t.conversation_key, t.id, c * 10, c * 10 + 10, '[]' FROM turns t, generate_series(0, 19) c
	WHERE t.status = 'in_flight';
INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation, reply_id, epoch, number,
	first, layer, endpoint, provider, model, class, idempotency_key, request_bytes, create_time, end_time)
	SELECT conversation_key, id, 'tenant', conversation_key, responds_to, 1, id, 1, 1, true, 'first', '', '', '',
		CASE WHEN status = 'in_flight' THEN '' ELSE 'ok' END, '', 100, now(), end_time FROM turns WHERE role = 'assistant';
INSERT INTO reply_takeovers (conversation_key, reply_id, epoch, way, from_worker, to_worker, create_time)
	SELECT conversation_key, id, 2, '', id, id, now() FROM turns WHERE role = 'assistant';
INSERT INTO turn_repeats (conversation_key, turn_id, layer, tenant, conversation_id, count, first_time, last_time)
	SELECT conversation_key, id, 'client', 'tenant' || seq % 50, conversation_key, 1, create_time, create_time FROM turns WHERE role = 'user';
INSERT INTO quotas (tenant, subject, day) SELECT 'tenant' || n % 50, 'subject' || n, current_date - (n % 100)::int FROM generate_series(1, 20000) n;
INSERT INTO quota_reservations (conversation_key, turn_id, generation, tenant, subject, day, of_subject, of_tenant, turns, tokens, open, create_time)
	SELECT conversation_key, responds_to, 1, 'tenant' || seq % 50, 'subject' || seq, current_date - (seq % 100)::int, true, true, 1, 10,
		status = 'in_flight', create_time FROM turns WHERE role = 'assistant';
`

// sent is a statement as the store sent it.
type sent struct {
	sql  string
	args []any
}

// recorder remembers what a pool sends.
type recorder struct{ statements []sent }

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.statements = append(r.statements, sent{data.SQL, data.Args})
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.statements = append(r.statements, sent{data.SQL, data.Args})
}

func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// recorded is a store on a filled database that remembers its statements.
func recorded(t *testing.T) (database, *recorder) {
	d := openOwn(t)
	_, err := d.rows.Exec(t.Context(), filled)
	require.NoError(t, err)
	_, err = d.rows.Exec(t.Context(), `ANALYZE`)
	require.NoError(t, err)
	r := &recorder{}
	p, err := newPool(t.Context(), Config{URL: d.dsn, Tracer: r}, 1)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	d.store = &Store{pool: p, vital: p, lease: p}
	d.store.groups.open(d.store)
	return d, r
}

// running finds a running reply of the filled database and gives its claim as far as the tests need it.
func (d database) running(t *testing.T) turns.Claim {
	t.Helper()
	var key, reply, turn, owner [16]byte
	require.NoError(t, d.rows.QueryRow(t.Context(), `SELECT conversation_key, id, responds_to, owner FROM turns
		WHERE status = 'in_flight' ORDER BY id LIMIT 1`).Scan(&key, &reply, &turn, &owner))
	return turns.Claim{Key: key, Turn: turns.TurnID{UUID: turn}, Call: turns.NewCall{ID: turns.CallID{UUID: reply}},
		Reply: turns.NewReply{ID: turns.ReplyID{UUID: reply}, Owner: turns.WorkerID{UUID: owner}}}
}

// lose ends a running reply of the filled database as a sweep does whose owner may come back, with an empty log.
func (d database) lose(t *testing.T, c turns.Claim) error {
	_, err := d.rows.Exec(t.Context(), `UPDATE turns SET status = 'abandoned', reason = 'lease_expired', epoch = 1,
		content = '[]', log_len = 0, end_time = now(), settled_at = NULL WHERE conversation_key = $1 AND id = $2`,
		[16]byte(c.Key), [16]byte(c.Reply.ID.UUID))
	return err
}

// age makes all calls old enough for kept sums to pass them, and gives a conversation so many that they do.
func (d database) age(t *testing.T, key turns.ConversationKey) error {
	_, err := d.rows.Exec(t.Context(), `UPDATE provider_calls SET create_time = create_time - interval '2 hours'`)
	if err != nil {
		return err
	}
	_, err = d.rows.Exec(t.Context(), `INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation,
			reply_id, epoch, number, first, layer, endpoint, provider, model, idempotency_key, request_bytes, create_time)
		SELECT $1, gen_random_uuid(), 'tenant', $1, $1, 1, $1, 1, 1, true, 'first', '', '', '', '', 1, now() - interval '2 hours' FROM generate_series(1, 100)`,
		[16]byte(key))
	return err
}

// eraseAll erases what was deleted.
func (d database) eraseAll(ctx context.Context) error {
	keys, err := d.store.ConversationsToErase(ctx, 10)
	for _, key := range keys {
		for left := true; left && err == nil; {
			left, err = d.store.EraseConversation(ctx, key, 200)
		}
	}
	return err
}

// useSums reads what was spent, so much that the kept sums move on.
func (d database) useSums(t *testing.T, key turns.ConversationKey) error {
	if err := d.age(t, key); err != nil {
		return err
	}
	_, err := d.store.ConversationSpent(t.Context(), key)
	_, tenantErr := d.store.TenantSpent(t.Context(), "tenant")
	return errors.Join(err, tenantErr)
}

// useEverything calls each method of the port once.
func (d database) useEverything(t *testing.T) {
	ctx, s, run := t.Context(), d.store, d.running(t)
	fresh := newClaim(run.Reply.Owner)
	worker := turns.Worker{ID: turns.WorkerID{UUID: uuid.New()}}
	cp, e, sw := tail(run), completing(run), sweeping(run)
	cp.From, cp.To, e.StoredLength = 200, 203, 203
	lost := restoring(run)
	lost.ExpectVersion, lost.NextSeq, lost.Reply.Attempt, lost.Reply.Generation = 5, 11, 2, 1
	calls := []func() error{
		func() error { return d.useArchive(ctx, run.Key) },
		func() error { return d.useAccess(ctx) },
		func() error { return s.RegisterWorker(ctx, worker, time.Hour) },
		func() error { return s.RenewLease(ctx, worker.ID, time.Hour) },
		func() error { return s.RetireWorker(ctx, worker.ID) },
		func() error { _, err := s.BuryWorkers(ctx); return err },
		func() error { return s.ForgetWorkers(ctx, time.Hour) },
		func() error { _, err := s.Server(ctx); return err },
		func() error {
			_, err := s.Lookup(ctx, turns.LookupQuery{Key: run.Key, Turn: run.Turn, Parent: run.Reply.ID.Row(), Cursor: run.Reply.ID})
			return err
		},
		func() error {
			_, err := s.ReadPath(ctx, run.Key, run.Reply.ID.Row(), turns.PathLimit{Rows: 100, Bytes: 1 << 20})
			return err
		},
		func() error { _, err := s.Claim(ctx, []turns.Claim{fresh}); return err },
		func() error { _, err := s.PermitCalls(ctx, []turns.CallPermit{permitFor(run)}); return err },
		func() error { _, err := s.Checkpoint(ctx, []turns.Checkpoint{cp}); return err },
		func() error {
			return s.MarkFollowed(ctx, []turns.FollowMark{{Key: run.Key, Reply: run.Reply.ID, For: time.Minute}})
		},
		func() error {
			_, err := s.ReadLogs(ctx, []turns.LogPosition{{Key: run.Key, Reply: run.Reply.ID, From: 95, Max: 30}})
			return err
		},
		func() error { return s.CloseCalls(ctx, []turns.CallOutcome{*e.Call}) },
		func() error { _, err := s.End(ctx, []turns.Ending{e}); return err },
		func() error { _, err := s.StaleReplies(ctx, turns.StaleQuery{Limit: 100}); return err },
		func() error { _, err := s.StaleReplies(ctx, turns.StaleQuery{Key: &run.Key, Limit: 1}); return err },
		func() error { _, err := s.Sweep(ctx, sw); return err },
		func() error { _, err := s.RequestStop(ctx, run.Key, run.Turn, 0, turns.TurnID{}); return err },
		func() error {
			_, err := s.Select(ctx, turns.Selection{Key: run.Key, ExpectVersion: 5, Turn: run.Turn, Select: run.Reply.ID, Supersede: run.Reply.ID})
			return err
		},
		func() error { _, err := s.OwnedReplies(ctx, run.Reply.Owner, 0, 100); return err },
		func() error { _, err := s.TakeOver(ctx, takingOver(run, run.Reply.Owner)); return err },
		func() error { _, err := s.Restore(ctx, lost); return err },
		func() error { _, err := s.ListWorkers(ctx); return err },
		func() error {
			_, err := s.NoteCalls(ctx, []turns.CallNote{{Fence: fenceOf(run), Call: run.Call.ID}})
			return err
		},
		func() error { return orMissing(s.ReadCall(ctx, run.Key, run.Call.ID)) },
		func() error {
			_, err := s.ListCalls(ctx, turns.LedgerQuery{Filter: turns.LedgerFilter{Tenant: "tenant"}, Limit: 50})
			return err
		},
		func() error {
			_, err := s.ListCalls(ctx, turns.LedgerQuery{Filter: turns.LedgerFilter{Tenant: "tenant", Key: &run.Key}, Limit: 50})
			return err
		},
		func() error {
			_, err := s.SumCalls(ctx, turns.LedgerFilter{Tenant: "tenant", From: time.Now()})
			return err
		},
		func() error {
			_, err := s.SumCalls(ctx, turns.LedgerFilter{Tenant: "tenant", Key: &run.Key})
			return err
		},
		func() error { _, err := s.HeldReplies(ctx, turns.HeldQuery{Tenant: "tenant1", Limit: 50}); return err },
		func() error { _, err := s.Backlog(ctx, 50); return err },
		func() error { _, err := s.DueLookups(ctx, time.Second, time.Minute, 50); return err },
		func() error { _, err := s.WakeLookup(ctx, run.Key, run.Turn, 0); return err },
		func() error { return d.setHeld(t, run) },
		func() error { _, err := s.ResolveHeld(ctx, adopting(run)); return err },
		func() error { _, err := s.Replace(ctx, replacing(run, 6)); return err },
		func() error { return d.lose(t, run) },
		func() error { _, err := s.Revive(ctx, reviving(run)); return err },
		func() error { return d.lose(t, run) },
		func() error { _, err := s.Salvage(ctx, completing(run)); return err },
		func() error { return d.lose(t, run) },
		func() error { _, err := s.Settle(ctx, completing(run)); return err },
		func() error { _, err := s.ReadReply(ctx, run.Key, run.Reply.ID); return err },
		func() error { return orMissing(s.ReadReply(ctx, run.Key, turns.ReplyID{UUID: uuid.New()})) },
		func() error { _, err := s.NewestLeaf(ctx, run.Key, run.Reply.ID.Row(), 100); return err },
		func() error { _, err := s.FindTurn(ctx, run.Key, run.Reply.ID.Row()); return err },
		func() error { _, err := s.RepliesTo(ctx, run.Key, run.Turn, 10); return err },
		func() error { _, err := s.Entries(ctx, run.Key, []turns.TurnID{run.Turn}); return err },
		func() error { return d.setHeld(t, run) },
		func() error { _, err := s.DeleteTurn(ctx, run.Key, run.Turn, 100); return err },
		func() error { _, err := s.DeleteConversation(ctx, d.running(t).Key); return err },
		func() error { _, err := s.ConversationsToErase(ctx, 10); return err },
		func() error { return d.eraseAll(ctx) },
	}
	calls = append(append(append(d.storyCalls(t, run), d.quotaCalls(t, run)...), calls...), d.conversationCalls(t, run, fresh)...)
	for _, call := range append(calls, d.lineCalls(t, run, fresh)...) {
		require.NoError(t, call())
	}
}

// conversationCalls call each method of conversations once, and those that sum what was spent.
func (d database) conversationCalls(t *testing.T, run, fresh turns.Claim) []func() error {
	ctx, s := t.Context(), d.store
	conversation := turns.Conversation{Key: fresh.Key, ID: fresh.Conversation, Tenant: fresh.Tenant, DefaultsVersion: 1}
	return []func() error{
		func() error { _, _, err := s.CreateConversation(ctx, conversation); return err },
		func() error { _, err := s.UpdateConversation(ctx, conversation, 1); return err },
		func() error { _, err := s.ReadDefaults(ctx, conversation.Key, 1); return err },
		func() error { return d.useSums(t, run.Key) },
		func() error {
			_, err := s.ListConversations(ctx, turns.ConversationQuery{Tenant: "tenant1", Limit: 50, Look: 50})
			return err
		},
	}
}

// quotaCalls call each method of quotas, and what charges them.
func (d database) quotaCalls(t *testing.T, run turns.Claim) []func() error {
	ctx, s := t.Context(), d.store
	claim := newClaim(run.Reply.Owner)
	claim.Reserve = &turns.Reservation{Subject: "subject1", Tokens: 10, Submission: true, Limits: turns.SubmissionLimits{
		PerMinute: 100, SubjectTurns: 100, SubjectTokens: 100_000, TenantTurns: 100, TenantTokens: 100_000}}
	key := turns.ReservationKey{Key: claim.Key, Turn: claim.Turn, Generation: 1}
	settleOpen := func(tenant turns.Tenant, subject string) func() error {
		return func() error { _, err := s.SettleOpen(ctx, tenant, subject, 10); return err }
	}
	return []func() error{
		func() error { _, err := s.Claim(ctx, []turns.Claim{claim}); return err },
		func() error { _, err := s.End(ctx, []turns.Ending{completing(claim)}); return err },
		func() error { return s.SettleReservations(ctx, []turns.ReservationKey{key}) },
		settleOpen("", ""), settleOpen("tenant1", ""), settleOpen("tenant1", "subject1"),
		func() error { _, err := s.QuotaUsed(ctx, "tenant1", "subject1"); return err },
		func() error { _, err := s.QuotaSettled(ctx, "tenant1", "subject1"); return err },
		func() error { _, err := s.QuotaSettled(ctx, "tenant1", ""); return err },
		func() error { _, err := s.ForgetQuotas(ctx, 24*time.Hour, 100); return err },
	}
}

// lineCalls call each method of lines once.
func (d database) lineCalls(t *testing.T, run, fresh turns.Claim) []func() error {
	ctx, s := t.Context(), d.store
	return []func() error{
		func() error {
			_, err := s.Enqueue(ctx, turns.Enqueueing{Key: run.Key, ExpectVersion: 5, Turn: turns.TurnID{UUID: uuid.New()}, Max: 8,
				NewTurn: *fresh.NewTurn})
			return err
		},
		func() error {
			_, err := s.LeaveLine(ctx, turns.Departure{Key: run.Key, ExpectVersion: 6, Turn: run.Turn, Reply: turns.ReplyID{UUID: uuid.New()},
				Verb: turns.VerbCancel, Reason: turns.ReasonCancelled})
			return err
		},
		func() error {
			_, err := s.ReadLine(ctx, []turns.LinePlace{{Key: run.Key, Turn: run.Turn}})
			return err
		},
		func() error { _, err := s.IdleLines(ctx, turns.ConversationKey{}, 100); return err },
	}
}

var (
	scansAll = regexp.MustCompile(`Seq Scan on (turns|reply_chunks|provider_calls|conversations|quotas|quota_reservations|reply_takeovers|turn_repeats)\b.*`)
	// walksRunning is a walk over all that is running, which only sweeps, audits and gauges may do.
	walksRunning = regexp.MustCompile(`turns_running_by_.*`)
	// large is a look at a table that grows, by an index, and few are the indexes that hold a few rows of one.
	large  = regexp.MustCompile(`Scan (?:Backward )?using (\w+) on (?:turns|reply_chunks|provider_calls|conversations|quotas|quota_reservations|reply_takeovers|turn_repeats)\b`)
	few    = regexp.MustCompile(`^(turns_in_line|turns_held_by_\w+|turns_running_by_\w+|one_running_reply_per_conversation|conversations_to_erase|quota_reservations_(open|by_age))$`)
	sweeps = []string{"staleReplies", "forgetWorkers", "ownedReplies", "listWorkers", "readBacklog", "idleLines"}
)

// bounded asserts that a plan reads what the statement names and no more.
func bounded(t *testing.T, name, plan string) {
	t.Helper()
	require.NotRegexp(t, scansAll, plan, name)
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		if look := large.FindStringSubmatch(line); look != nil && !few.MatchString(look[1]) {
			require.True(t, i+1 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i+1]), "Index Cond:"), "%s: %s has no condition", name, line)
		}
	}
	if !slices.Contains(sweeps, name) {
		require.NotRegexp(t, walksRunning, plan, name)
	}
}

// explain is the plan of a statement for these arguments.
func explain(t *testing.T, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN "+sql, args...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

// explainGeneric is the plan that a prepared statement gets once it is planned for any arguments.
func explainGeneric(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	text := numbered(t, sql)
	description, err := conn.Prepare(t.Context(), text, text)
	require.NoError(t, err)
	for _, setup := range []string{"SET plan_cache_mode = force_generic_plan", "DEALLOCATE ALL", "PREPARE tried AS " + text} {
		_, err = conn.Exec(t.Context(), setup, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", len(description.ParamOIDs)), ",")
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	return explain(t, conn, "EXECUTE tried"+nulls, pgx.QueryExecModeSimpleProtocol)
}

func TestNoStatementScansALargeTableAtAHundredThousandTurns(t *testing.T) {
	d, r := recorded(t)
	d.useEverything(t)
	conn := d.session(t)
	untried := statements(t)
	for _, s := range r.statements {
		for name, sql := range untried {
			if sql != s.sql && numbered(t, sql) != s.sql { // a batch says the text that was sent
				continue
			}
			delete(untried, name)
			bounded(t, name, explain(t, conn, s.sql, s.args...))
		}
	}
	require.Empty(t, untried, "every statement was sent and explained")
}

func TestNoGenericPlanScansALargeTable(t *testing.T) {
	d, _ := recorded(t)
	conn := d.session(t)
	for name, sql := range statements(t) {
		bounded(t, name, explainGeneric(t, conn, sql))
	}
}

func TestACheckpointChangesItsRowInPlace(t *testing.T) {
	d := openOwn(t)
	c := d.win(t, newClaim(d.worker(t)))
	for from := uint32(0); from < 30; from += 3 {
		cp := tail(c)
		cp.From, cp.To = from, from+3
		results, err := d.store.Checkpoint(t.Context(), []turns.Checkpoint{cp})
		require.NoError(t, err)
		require.True(t, results[0].Held)
	}
	d.store.Close() // a backend that ends reports what it counted
	require.Eventually(t, func() bool {
		return d.count(t, `SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'turns'`) >= 10
	}, patience, 10*time.Millisecond)
	require.GreaterOrEqual(t, d.count(t, `SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'turns'`), 10)
}
