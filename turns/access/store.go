package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Errors of a Store.
var (
	// ErrNotFound says that there is no such key.
	ErrNotFound = errors.New("no such key")
	// ErrTaken says that a key's id is another's.
	ErrTaken = errors.New("there is a key of that id")
)

// Key is an API key as it is kept, without its secret.
type Key struct {
	// ID is the public part of the key's text, by which it is found.
	ID string
	// Hash is the SHA-256 of the key's whole text.
	Hash []byte
	// Tenant and Subject are whom it stands for.
	Tenant  string
	Subject string
	Scopes  []Scope
	// Name is a label for people.
	Name       string
	CreateTime time.Time
	// ExpireTime is when it ends by itself, and RevokeTime when it was revoked; zero is never.
	ExpireTime time.Time
	RevokeTime time.Time
}

// Ended says why a key is no good at a time by the database's clock; empty if it is.
func (k Key) Ended(now time.Time) string {
	switch {
	case !k.RevokeTime.IsZero():
		return "revoked"
	case !k.ExpireTime.IsZero() && !now.Before(k.ExpireTime):
		return "expired"
	}
	return ""
}

// String implements fmt.Stringer without the hash.
func (k Key) String() string { return fmt.Sprintf("key %s of %s in %s", k.ID, k.Subject, k.Tenant) }

// LogValue implements slog.LogValuer without the hash.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Suspension is a subject that may make nothing new.
type Suspension struct {
	Tenant     string
	Subject    string
	CreateTime time.Time
}

// Store is the port to where keys and suspensions are kept. Times are the database's, apart from ExpireTime.
type Store interface {
	// CreateKey keeps a new key and returns it with its time. An id that is taken is ErrTaken.
	CreateKey(ctx context.Context, k Key) (Key, error)
	// FindKey reads a key by its id, and now by the database's clock; ErrNotFound if there is none.
	FindKey(ctx context.Context, id string) (k Key, now time.Time, err error)
	// ListKeys reads keys in the order of their ids, after one on, at most limit: of a tenant, or of all if that is empty.
	ListKeys(ctx context.Context, tenant, after string, limit int) ([]Key, error)
	// RevokeKey ends a key, and returns it. Again is no error and keeps the first time; ErrNotFound if there is none.
	RevokeKey(ctx context.Context, id string) (Key, error)

	// Suspend keeps a subject from making anything new. Again is no error and keeps the first time.
	Suspend(ctx context.Context, tenant, subject string) error
	// Reinstate undoes it, and says whether the subject was suspended.
	Reinstate(ctx context.Context, tenant, subject string) (bool, error)
	// Suspended says whether a subject is.
	Suspended(ctx context.Context, tenant, subject string) (bool, error)
	// ListSuspended reads suspensions in the order of tenant and subject, after one on, at most limit.
	ListSuspended(ctx context.Context, after Suspension, limit int) ([]Suspension, error)
}
