package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/turnd/turnd/turns/access"
)

const keyColumns = ` key_id, hash, tenant, subject, scopes, name, create_time, expire_time, revoke_time`

const createKey = `INSERT INTO api_keys (key_id, hash, tenant, subject, scopes, name, create_time, expire_time)
	VALUES (@id, @hash, @tenant, @subject, @scopes, @name, @now, @expires) RETURNING` + keyColumns

const findKey = `SELECT` + keyColumns + ` FROM api_keys WHERE key_id = @id`

const listKeys = `SELECT` + keyColumns + ` FROM api_keys WHERE key_id > @after ORDER BY key_id LIMIT @limit`

const listKeysOf = `SELECT` + keyColumns + ` FROM api_keys WHERE tenant = @tenant AND key_id > @after ORDER BY key_id LIMIT @limit`

const revokeKey = `UPDATE api_keys SET revoke_time = COALESCE(revoke_time, @now) WHERE key_id = @id RETURNING` + keyColumns

const suspend = `INSERT INTO suspensions (tenant, subject, create_time) VALUES (@tenant, @subject, @now)
	ON CONFLICT (tenant, subject) DO NOTHING`

const reinstate = `DELETE FROM suspensions WHERE tenant = @tenant AND subject = @subject`

const isSuspended = `SELECT 1 FROM suspensions WHERE tenant = @tenant AND subject = @subject`

const listSuspended = `SELECT tenant, subject, create_time FROM suspensions WHERE (tenant, subject) > (@tenant, @subject)
	ORDER BY tenant, subject LIMIT @limit`

var _ access.Store = (*Store)(nil)

// keys runs a statement that gives rows of keys.
func (t *tx) keys(text string, args ...any) (keys []access.Key, err error) {
	err = t.query(func(scan func(...any) error) error {
		var k access.Key
		var scopes string
		var created int64
		var expires, revoked sql.NullInt64
		err := scan(&k.ID, &k.Hash, &k.Tenant, &k.Subject, &scopes, &k.Name, &created, &expires, &revoked)
		k.Scopes, k.CreateTime = access.StoredScopes(scopes), timeOf(created)
		k.ExpireTime, k.RevokeTime = timeOrZero(expires), timeOrZero(revoked)
		keys = append(keys, k)
		return err
	}, text, args...)
	return keys, err
}

// key runs a statement that gives at most one.
func (t *tx) key(text string, args ...any) (access.Key, error) {
	keys, err := t.keys(text, args...)
	switch {
	case err != nil:
		return access.Key{}, err
	case len(keys) == 0:
		return access.Key{}, access.ErrNotFound
	}
	return keys[0], nil
}

func timeOrZero(us sql.NullInt64) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return timeOf(us.Int64)
}

// CreateKey implements access.Store.
func (s *Store) CreateKey(ctx context.Context, k access.Key) (stored access.Key, err error) {
	if err := k.Check(); err != nil {
		return access.Key{}, err
	}
	expires := sql.NullInt64{Int64: k.ExpireTime.UnixMicro(), Valid: !k.ExpireTime.IsZero()}
	err = s.writeTx(ctx, "create a key", func(t *tx) error {
		stored, err = t.key(createKey, arg("id", k.ID), arg("hash", k.Hash), arg("tenant", k.Tenant), arg("subject", k.Subject),
			arg("scopes", access.FormatScopes(k.Scopes)), arg("name", k.Name), arg("now", t.now), arg("expires", expires))
		if codeOf(err) == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
			return fmt.Errorf("create a key: %w", access.ErrTaken)
		}
		return err
	})
	return stored, err
}

// FindKey implements access.Store.
func (s *Store) FindKey(ctx context.Context, id string) (k access.Key, now time.Time, err error) {
	err = s.readTx(ctx, "find a key", func(t *tx) error {
		now = timeOf(t.now)
		k, err = t.key(findKey, arg("id", id))
		return err
	})
	return k, now, err
}

// ListKeys implements access.Store.
func (s *Store) ListKeys(ctx context.Context, tenant, after string, limit int) (keys []access.Key, err error) {
	text, args := listKeys, []any{arg("after", after), arg("limit", limit)}
	if tenant != "" {
		text, args = listKeysOf, append(args, arg("tenant", tenant))
	}
	err = s.readTx(ctx, "list keys", func(t *tx) error {
		keys, err = t.keys(text, args...)
		return err
	})
	return keys, err
}

// RevokeKey implements access.Store.
func (s *Store) RevokeKey(ctx context.Context, id string) (k access.Key, err error) {
	err = s.writeTx(ctx, "revoke a key", func(t *tx) error {
		k, err = t.key(revokeKey, arg("id", id), arg("now", t.now))
		return err
	})
	return k, err
}

// Suspend implements access.Store.
func (s *Store) Suspend(ctx context.Context, tenant, subject string) error {
	return s.writeTx(ctx, "suspend a subject", func(t *tx) error {
		_, err := t.exec(suspend, arg("tenant", tenant), arg("subject", subject), arg("now", t.now))
		return err
	})
}

// Reinstate implements access.Store.
func (s *Store) Reinstate(ctx context.Context, tenant, subject string) (was bool, err error) {
	err = s.writeTx(ctx, "reinstate a subject", func(t *tx) error {
		was, err = t.won(reinstate, arg("tenant", tenant), arg("subject", subject))
		return err
	})
	return was && err == nil, err
}

// Suspended implements access.Store.
func (s *Store) Suspended(ctx context.Context, tenant, subject string) (is bool, err error) {
	err = s.readTx(ctx, "look for a suspension", func(t *tx) error {
		var one int
		is, err = t.found(isSuspended, []any{arg("tenant", tenant), arg("subject", subject)}, &one)
		return err
	})
	return is, err
}

// ListSuspended implements access.Store.
func (s *Store) ListSuspended(ctx context.Context, after access.Suspension, limit int) (list []access.Suspension, err error) {
	err = s.readTx(ctx, "list suspensions", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var one access.Suspension
			var created int64
			err := scan(&one.Tenant, &one.Subject, &created)
			one.CreateTime = timeOf(created)
			list = append(list, one)
			return err
		}, listSuspended, arg("tenant", after.Tenant), arg("subject", after.Subject), arg("limit", limit))
	})
	return list, err
}
