package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
)

// A replacement is an ending and a claim in one transaction. Its rows are locked first, in the order of a claim: the new
// owner, the conversation at the claim's version, the user turn; the ending then locks the reply. An ending alone locks
// only that, so neither can wait for the other in a circle. What the reply answers never changes and needs no lock.
const lockReplacement = `
WITH living AS (
	SELECT w.worker_id FROM workers w WHERE w.worker_id = @owner AND NOT w.dead FOR KEY SHARE
), locked AS (
	SELECT c.conversation_key FROM living l JOIN conversations c ON c.conversation_key = @key
	WHERE c.version = @expect AND c.deleted_at IS NULL FOR NO KEY UPDATE OF c
), asked AS (
	SELECT u.id FROM locked l JOIN turns u ON u.conversation_key = @key AND u.id = @turn
	WHERE u.role = 'user' AND EXISTS (SELECT 1 FROM turns r WHERE r.conversation_key = @key AND r.id = @reply
		AND r.responds_to = @turn AND r.generation = @generation)
	FOR NO KEY UPDATE OF u
)
SELECT id FROM asked`

// errLostReplacement undoes a replacement of which a part was lost.
var errLostReplacement = errors.New("the reply can't be replaced")

// Replace implements turns.Held. One that the transition table has not is CodeWrongState. After an unknown outcome the new
// reply's row says whether it was won.
func (s *Store) Replace(ctx context.Context, r turns.Replacement) (turns.ClaimResult, error) {
	const op = "replace a reply"
	if err := allowed(r.Ending.Verb, r.Ending.Status, r.Ending.Reason, turns.VerbReplace); err != nil {
		return turns.ClaimResult{}, wrap(op, err)
	}
	if c := r.Claim; c.Key != r.Ending.Fence.Key || c.NewTurn != nil || c.Supersede != (turns.ReplyID{}) {
		return turns.ClaimResult{}, wrap(op, &turns.Error{Code: turns.CodeWrongState, Problem: "a reply is replaced by another of its own turn"})
	}
	ending, err := endingArgs([]turns.Ending{r.Ending})
	if err != nil {
		return turns.ClaimResult{}, wrap(op, err)
	}
	ending["replaced_by"] = []zeronull.UUID{zeronull.UUID(r.Claim.Reply.ID.UUID)}
	claiming, err := claimArgs([]turns.Claim{r.Claim})
	if err != nil {
		return turns.ClaimResult{}, wrap(op, err)
	}
	var won claimRow
	err = s.pool.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			won, err = replaceIn(ctx, tx, lockArgs(r), ending, claiming)
			return err
		})
	})
	if errors.Is(err, errLostReplacement) || isUniqueViolation(err) {
		return turns.ClaimResult{}, nil
	}
	if err != nil {
		return turns.ClaimResult{}, mapWrite(op, err)
	}
	return turns.ClaimResult{Won: true, CreateTime: won.CreateTime.UTC()}, nil
}

func lockArgs(r turns.Replacement) pgx.NamedArgs {
	return pgx.NamedArgs{
		"owner": zeronull.UUID(r.Claim.Reply.Owner.UUID), "key": zeronull.UUID(r.Claim.Key), "expect": r.Claim.ExpectVersion,
		"turn": zeronull.UUID(r.Claim.Turn.UUID), "reply": zeronull.UUID(r.Ending.Fence.Reply.UUID),
		"generation": r.Claim.Reply.Generation,
	}
}

// replaceIn runs the three statements of a replacement, each of which must find its row.
func replaceIn(ctx context.Context, tx pgx.Tx, lock, ending, claiming pgx.NamedArgs) (won claimRow, err error) {
	if _, err := only(ctx, tx, lockReplacement, lock, pgx.RowTo[[16]byte]); err != nil {
		return won, err
	}
	if _, err := only(ctx, tx, end, ending, pgx.RowToStructByName[endRow]); err != nil {
		return won, err
	}
	return only(ctx, tx, claim, claiming, pgx.RowToStructByName[claimRow])
}

func only[T any](ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (row T, err error) {
	rows, err := tx.Query(ctx, sql, named(args))
	if err != nil {
		return row, err
	}
	row, err = pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, errLostReplacement
	}
	return row, err
}
