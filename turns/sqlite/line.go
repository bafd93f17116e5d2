package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

const lineLength = `SELECT COUNT(*) FROM turns INDEXED BY turns_in_line WHERE conversation_key = @key AND role = 'user' AND waiting <> ''`

// moveLine gives a new row of a conversation its place.
const moveLine = `UPDATE conversations SET version = version + 1, next_seq = next_seq + 1, update_time = @now
	WHERE conversation_key = @key AND version = @version AND deleted_at IS NULL
	RETURNING next_seq - 1`

const enqueueTurn = `INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, options, input_hash, waiting, create_time)
	SELECT @key, @turn, 'user', @parent, @seq, @content, @options, @hash, @waiting, @now
	WHERE NOT EXISTS (SELECT 1 FROM turns WHERE conversation_key = @key AND id = @turn)`

// Enqueue implements turns.Lines.
func (s *Store) Enqueue(ctx context.Context, e turns.Enqueueing) (r turns.EnqueueResult, err error) {
	won, err := s.winTx(ctx, "enqueue", func(t *tx) (bool, error) {
		won, err := t.found(moveLine, []any{arg("key", e.Key[:]), arg("version", e.ExpectVersion), arg("now", t.now)}, &r.Seq)
		if err != nil || !won {
			return false, err
		}
		if _, err := t.found(lineLength, []any{arg("key", e.Key[:])}, &r.Position); err != nil {
			return false, err
		}
		if r.Full = r.Position >= e.Max; r.Full {
			return false, nil
		}
		r.CreateTime = timeOf(t.now)
		won, err = t.enqueue(e, r.Seq)
		if err != nil || !won || e.Reserve == nil {
			return won, err
		}
		r.Met, err = t.charge(turns.ReservationKey{Key: e.Key, Turn: e.Turn, Generation: 1}, e.Waiting.Caller.Tenant, e.Reserve)
		return r.Met == nil, err
	})
	if err != nil {
		return turns.EnqueueResult{}, err
	}
	if !won {
		return turns.EnqueueResult{Full: r.Full, Met: r.Met}, nil
	}
	r.Won = true
	return r, nil
}

func (t *tx) enqueue(e turns.Enqueueing, seq int64) (bool, error) {
	stored, err := newTurnArgs(&e.NewTurn)
	if err != nil {
		return false, err
	}
	waiting, err := turns.EncodeWaiting(e.Waiting)
	if err != nil {
		return false, err
	}
	return t.won(enqueueTurn, append(stored, arg("key", e.Key[:]), blob("turn", e.Turn.UUID), arg("seq", seq),
		textArg("waiting", waiting), arg("now", t.now))...)
}

var departureVerbs = []turns.Verb{turns.VerbCancel, turns.VerbRefuse}

const leaveLine = `UPDATE turns SET waiting = '', parent_id = @parent,
		cancelled_generation = CASE WHEN @stops THEN generation ELSE cancelled_generation END
	WHERE conversation_key = @key AND id = @turn AND role = 'user' AND waiting <> ''`

// The reply that stands for a turn which left the line is over from its beginning, and settled: nobody made it.
const insertDeparted = `INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, generation, status, reason, attempt,
		epoch, owner, model, content, provider_code, cancel_requested, settled_at, create_time, end_time)
	SELECT @key, @reply, 'assistant', @turn, @turn, @seq, generation, 'abandoned', @reason, 1, 1, @owner, @model, '[]', @code, @stops,
		@now, @now, @now
	FROM turns WHERE conversation_key = @key AND id = @turn`

// LeaveLine implements turns.Lines.
func (s *Store) LeaveLine(ctx context.Context, d turns.Departure) (r turns.DepartureResult, err error) {
	if !allowedFrom("", departureVerbs, d.Verb, turns.StatusAbandoned, d.Reason) {
		return r, wrongState(d.Verb, turns.StatusAbandoned, d.Reason)
	}
	key, turn, stops := arg("key", d.Key[:]), blob("turn", d.Turn.UUID), arg("stops", d.Verb == turns.VerbCancel)
	won, err := s.winTx(ctx, "leave the line", func(t *tx) (bool, error) {
		var seq int64
		won, err := t.found(moveLine, []any{key, arg("version", d.ExpectVersion), arg("now", t.now)}, &seq)
		if err != nil || !won {
			return false, err
		}
		if won, err := t.won(leaveLine, key, turn, stops, blob("parent", d.Parent.UUID)); err != nil || !won {
			return false, err
		}
		r.Time = timeOf(t.now)
		return t.won(insertDeparted, key, turn, stops, blob("reply", d.Reply.UUID), arg("seq", seq), arg("reason", string(d.Reason)),
			blob("owner", d.Owner.UUID), arg("model", d.Model), arg("code", d.ProviderCode), arg("now", t.now))
	})
	if err != nil || !won {
		return turns.DepartureResult{}, err
	}
	r.Won = true
	return r, nil
}

// A turn that is not in line has no place there, and its live reply comes first, then the newest.
const readPlace = `SELECT u.waiting <> '',
		CASE WHEN u.waiting <> '' THEN (SELECT COUNT(*) FROM turns q INDEXED BY turns_in_line
			WHERE q.conversation_key = @key AND q.role = 'user' AND q.waiting <> '' AND q.seq < u.seq) ELSE 0 END,
		CASE WHEN u.waiting = '' THEN (SELECT id FROM turns
			WHERE conversation_key = @key AND responds_to = @turn ORDER BY status <> 'abandoned' DESC, attempt DESC LIMIT 1) END
	FROM turns u WHERE u.conversation_key = @key AND u.id = @turn AND u.role = 'user'`

// ReadLine implements turns.Lines.
func (s *Store) ReadLine(ctx context.Context, asked []turns.LinePlace) ([]turns.LineView, error) {
	views := make([]turns.LineView, len(asked))
	err := s.readTx(ctx, "read lines", func(t *tx) (err error) {
		for i, p := range asked {
			v := &views[i]
			v.Found, err = t.found(readPlace, []any{arg("key", p.Key[:]), blob("turn", p.Turn.UUID)}, &v.Waiting, &v.Position, &v.Reply.UUID)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return views, nil
}

const idleLines = `SELECT DISTINCT q.conversation_key FROM turns q INDEXED BY turns_in_line
	WHERE q.role = 'user' AND q.waiting <> '' AND q.conversation_key > @after AND NOT EXISTS (
		SELECT 1 FROM turns r INDEXED BY one_running_reply_per_conversation
		WHERE r.conversation_key = q.conversation_key AND r.role = 'assistant' AND r.status = 'in_flight')
	ORDER BY q.conversation_key LIMIT @limit`

// IdleLines implements turns.Lines.
func (s *Store) IdleLines(ctx context.Context, after turns.ConversationKey, limit int) ([]turns.ConversationKey, error) {
	return s.keys(ctx, "read idle lines", idleLines, arg("after", after[:]), arg("limit", limit))
}

// keys are all that a statement gives.
func (s *Store) keys(ctx context.Context, doing, text string, args ...any) (keys []turns.ConversationKey, err error) {
	err = s.readTx(ctx, doing, func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var raw []byte
			if err := scan(&raw); err != nil {
				return err
			}
			keys = append(keys, turns.ConversationKey(raw))
			return nil
		}, text, args...)
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

const hasLine = `SELECT 1 FROM turns INDEXED BY turns_in_line WHERE conversation_key = @key AND role = 'user' AND waiting <> '' LIMIT 1`

const readLine = `SELECT id, waiting FROM turns INDEXED BY turns_in_line
	WHERE conversation_key = @key AND role = 'user' AND waiting <> '' ORDER BY seq`

// line are the turns in line, in their order.
func (t *tx) line(key turns.ConversationKey) (line []turns.InLine, err error) {
	err = t.query(func(scan func(...any) error) error {
		var next turns.InLine
		var waiting []byte
		if err := scan(&next.Turn.UUID, &waiting); err != nil {
			return err
		}
		next.Waiting, err = turns.DecodeWaiting(waiting)
		line = append(line, next)
		return asUnreadable(err)
	}, readLine, arg("key", key[:]))
	return line, err
}

// The leaf's reply and its turn, with the turn that it was stopped for, if that is not stored.
const lookupLeaf = `SELECT ` + rowColumns + `'',
		CASE WHEN r.role = 'user' AND NOT EXISTS (SELECT 1 FROM turns x WHERE x.conversation_key = @key AND x.id = r.stopped_for)
			THEN r.stopped_for END` + rowTables + `
	WHERE r.conversation_key = @key AND r.id IN (
		SELECT leaf_id FROM conversations WHERE conversation_key = @key
		UNION ALL
		SELECT t.responds_to FROM conversations v JOIN turns t ON t.conversation_key = @key AND t.id = v.leaf_id
			WHERE v.conversation_key = @key)`

// The turn that runs, and those that were stopped for the one asked for, the newest last. A bare seq would make the planner
// walk through the conversation in its order.
const lookupBeside = `SELECT ` + rowColumns + `'', COALESCE(r.stopped_for = @turn, 0)` + rowTables + `
	WHERE r.conversation_key = @key AND r.role = 'user' AND r.id IN (
		SELECT responds_to FROM turns INDEXED BY one_running_reply_per_conversation
			WHERE conversation_key = @key AND role = 'assistant' AND status = 'in_flight'
		UNION ALL
		SELECT id FROM turns INDEXED BY turns_stopped_for WHERE conversation_key = @key AND stopped_for = @turn)
	ORDER BY r.seq + 0`

// lookupBeside reads what a line's next start, or a turn in the place of a running one, goes by.
func (t *tx) lookupBeside(q turns.LookupQuery, st *turns.Standing) error {
	if !q.Beside && len(st.Line) == 0 {
		return nil
	}
	err := t.query(func(scan func(...any) error) error {
		var awaited turns.TurnID
		r, err := scanRow(scan, t.now, &awaited.UUID)
		switch {
		case err != nil:
			return err
		case r.user:
			st.Awaited = awaited
			st.LeafTurn, err = r.userTurnHead()
		default:
			st.LeafReply = &r.reply
		}
		return err
	}, lookupLeaf, arg("key", q.Key[:]))
	if err != nil || !q.Beside {
		return err
	}
	return t.query(func(scan func(...any) error) error {
		var stopped bool
		r, err := scanRow(scan, t.now, &stopped)
		if err != nil {
			return err
		}
		turn, err := r.userTurnHead()
		if stopped {
			st.Stopped = turn
		}
		if st.Running != nil && st.Running.Turn == turns.TurnID(r.id) {
			st.Busy = turn
		}
		return err
	}, lookupBeside, arg("key", q.Key[:]), blob("turn", q.Turn.UUID))
}
