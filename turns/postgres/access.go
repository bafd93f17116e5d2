package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns/access"
)

const keyColumns = `key_id, hash, tenant, subject, scopes, name, create_time, expire_time, revoke_time`

const createKey = `INSERT INTO api_keys (key_id, hash, tenant, subject, scopes, name, create_time, expire_time)
VALUES (@id, @hash, @tenant, @subject, @scopes, @name, clock_timestamp(), @expires) RETURNING ` + keyColumns

const findKey = `SELECT ` + keyColumns + `, clock_timestamp() AS now FROM api_keys WHERE key_id = @id`

const listKeys = `SELECT ` + keyColumns + ` FROM api_keys WHERE key_id > @after ORDER BY key_id LIMIT @limit`

const listKeysOf = `SELECT ` + keyColumns + ` FROM api_keys WHERE tenant = @tenant AND key_id > @after ORDER BY key_id LIMIT @limit`

const revokeKey = `UPDATE api_keys SET revoke_time = coalesce(revoke_time, clock_timestamp()) WHERE key_id = @id RETURNING ` + keyColumns

const suspend = `INSERT INTO suspensions (tenant, subject, create_time) VALUES (@tenant, @subject, clock_timestamp())
ON CONFLICT (tenant, subject) DO NOTHING`

const reinstate = `DELETE FROM suspensions WHERE tenant = @tenant AND subject = @subject`

const isSuspended = `SELECT true FROM suspensions WHERE tenant = @tenant AND subject = @subject`

const listSuspended = `SELECT tenant, subject, create_time FROM suspensions WHERE (tenant, subject) > (@tenant, @subject)
ORDER BY tenant, subject LIMIT @limit`

var _ access.Store = (*Store)(nil)

type apiKeyRow struct {
	KeyID                         string
	Hash                          []byte
	Tenant, Subject, Scopes, Name string
	CreateTime                    time.Time
	ExpireTime, RevokeTime        zeronull.Timestamptz
}

func (r apiKeyRow) key() access.Key {
	return access.Key{ID: r.KeyID, Hash: r.Hash, Tenant: r.Tenant, Subject: r.Subject, Scopes: access.StoredScopes(r.Scopes), Name: r.Name,
		CreateTime: r.CreateTime.UTC(), ExpireTime: utcOrZero(r.ExpireTime), RevokeTime: utcOrZero(r.RevokeTime)}
}

func utcOrZero(t zeronull.Timestamptz) time.Time {
	if at := time.Time(t); !at.IsZero() {
		return at.UTC()
	}
	return time.Time{}
}

// CreateKey implements access.Store.
func (s *Store) CreateKey(ctx context.Context, k access.Key) (access.Key, error) {
	if err := k.Check(); err != nil {
		return access.Key{}, err
	}
	row, _, err := one(ctx, s.pool, createKey, pgx.NamedArgs{"id": k.ID, "hash": k.Hash, "tenant": k.Tenant, "subject": k.Subject,
		"scopes": access.FormatScopes(k.Scopes), "name": k.Name, "expires": zeronull.Timestamptz(k.ExpireTime)}, pgx.RowToStructByName[apiKeyRow])
	if isUniqueViolation(err) {
		return access.Key{}, fmt.Errorf("create a key: %w", access.ErrTaken)
	}
	return row.key(), mapWrite("create a key", err)
}

// FindKey implements access.Store.
func (s *Store) FindKey(ctx context.Context, id string) (access.Key, time.Time, error) {
	type found struct {
		apiKeyRow
		Now time.Time
	}
	row, ok, err := one(ctx, s.pool, findKey, pgx.NamedArgs{"id": id}, pgx.RowToStructByName[found])
	switch {
	case err != nil:
		return access.Key{}, time.Time{}, mapRead("find a key", err)
	case !ok:
		return access.Key{}, time.Time{}, access.ErrNotFound
	}
	return row.key(), row.Now.UTC(), nil
}

// ListKeys implements access.Store.
func (s *Store) ListKeys(ctx context.Context, tenant, after string, limit int) ([]access.Key, error) {
	text, args := listKeys, pgx.NamedArgs{"after": after, "limit": limit}
	if tenant != "" {
		text, args["tenant"] = listKeysOf, tenant
	}
	rows, err := collect(ctx, s.pool, text, args, pgx.RowToStructByName[apiKeyRow])
	if err != nil {
		return nil, mapRead("list keys", err)
	}
	keys := make([]access.Key, len(rows))
	for i, row := range rows {
		keys[i] = row.key()
	}
	return keys, nil
}

// RevokeKey implements access.Store.
func (s *Store) RevokeKey(ctx context.Context, id string) (access.Key, error) {
	row, ok, err := one(ctx, s.pool, revokeKey, pgx.NamedArgs{"id": id}, pgx.RowToStructByName[apiKeyRow])
	switch {
	case err != nil:
		return access.Key{}, mapWrite("revoke a key", err)
	case !ok:
		return access.Key{}, access.ErrNotFound
	}
	return row.key(), nil
}

// Suspend implements access.Store.
func (s *Store) Suspend(ctx context.Context, tenant, subject string) error {
	_, err := exec(ctx, s.pool, suspend, pgx.NamedArgs{"tenant": tenant, "subject": subject})
	return mapWrite("suspend a subject", err)
}

// Reinstate implements access.Store.
func (s *Store) Reinstate(ctx context.Context, tenant, subject string) (bool, error) {
	removed, err := exec(ctx, s.pool, reinstate, pgx.NamedArgs{"tenant": tenant, "subject": subject})
	return removed > 0 && err == nil, mapWrite("reinstate a subject", err)
}

// Suspended implements access.Store.
func (s *Store) Suspended(ctx context.Context, tenant, subject string) (bool, error) {
	_, found, err := one(ctx, s.pool, isSuspended, pgx.NamedArgs{"tenant": tenant, "subject": subject}, pgx.RowTo[bool])
	return found, mapRead("look for a suspension", err)
}

// ListSuspended implements access.Store.
func (s *Store) ListSuspended(ctx context.Context, after access.Suspension, limit int) ([]access.Suspension, error) {
	list, err := collect(ctx, s.pool, listSuspended, pgx.NamedArgs{"tenant": after.Tenant, "subject": after.Subject, "limit": limit},
		pgx.RowToStructByName[access.Suspension])
	for i := range list {
		list[i].CreateTime = list[i].CreateTime.UTC()
	}
	return list, mapRead("list suspensions", err)
}
