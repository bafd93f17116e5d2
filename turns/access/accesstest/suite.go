// Package accesstest holds stores of keys and suspensions to their port. Each engine runs it.
package accesstest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns/access"
)

// Run holds a store to the port. The database may hold other rows, and gets some.
func Run(t *testing.T, open func(testing.TB) access.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, access.Store)
	}{
		{"a key is found as it was created", keyIsFound},
		{"a key that ends has its time and another has none", keyEnds},
		{"an id is one key's", idIsOneKeys},
		{"a key that is not whole is not kept", keyMustBeWhole},
		{"an unknown id is not found", unknownID},
		{"revoking keeps the first time", revoking},
		{"keys are listed by pages", keysByPages},
		{"a subject is suspended until it is reinstated", suspending},
		{"a suspension is of one tenant's subject", suspensionIsOfOne},
		{"suspensions are listed by pages", suspensionsByPages},
		{"a call that was given up does nothing", givenUp},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// newKey is a key of a tenant, with nothing optional.
func newKey(tenant string) (access.Key, access.Text) {
	text := access.Mint()
	return access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: tenant, Subject: "ann", Scopes: []access.Scope{access.ScopeRead}}, text
}

// fresh names a tenant that nobody else has.
func fresh() string { return "tenant-" + access.Mint().ID() }

func created(t testing.TB, s access.Store, k access.Key) access.Key {
	t.Helper()
	stored, err := s.CreateKey(t.Context(), k)
	require.NoError(t, err)
	return stored
}

func keyIsFound(t *testing.T, s access.Store) {
	k, text := newKey(fresh())
	k.Name, k.Scopes = "Ann's büro, 1", []access.Scope{access.ScopeTurns, access.ScopeOperator}
	stored := created(t, s, k)
	require.WithinDuration(t, time.Now(), stored.CreateTime, time.Minute)
	require.Equal(t, time.UTC, stored.CreateTime.Location())
	want := k
	want.CreateTime = stored.CreateTime
	require.Equal(t, want, stored)
	found, now, err := s.FindKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.Equal(t, want, found)
	require.False(t, now.Before(stored.CreateTime))
	require.True(t, found.Matches(text))
	require.False(t, found.Matches(access.Mint()))
}

func keyEnds(t *testing.T, s access.Store) {
	k, _ := newKey(fresh())
	k.ExpireTime = time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	created(t, s, k)
	found, now, err := s.FindKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.Equal(t, k.ExpireTime, found.ExpireTime)
	require.Empty(t, found.Ended(now))
	require.Equal(t, "expired", found.Ended(now.Add(2*time.Hour)))
	other, _ := newKey(k.Tenant)
	require.Zero(t, created(t, s, other).ExpireTime)
}

func idIsOneKeys(t *testing.T, s access.Store) {
	k, _ := newKey(fresh())
	created(t, s, k)
	other, _ := newKey(fresh())
	other.ID = k.ID
	_, err := s.CreateKey(t.Context(), other)
	require.ErrorIs(t, err, access.ErrTaken)
	found, _, err := s.FindKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.Equal(t, k.Tenant, found.Tenant)
}

func keyMustBeWhole(t *testing.T, s access.Store) {
	for name, spoil := range map[string]func(*access.Key){
		"no tenant":     func(k *access.Key) { k.Tenant = "" },
		"no subject":    func(k *access.Key) { k.Subject = "" },
		"no scope":      func(k *access.Key) { k.Scopes = nil },
		"unknown scope": func(k *access.Key) { k.Scopes = []access.Scope{"all"} },
		"no hash":       func(k *access.Key) { k.Hash = nil },
		"no id":         func(k *access.Key) { k.ID = "" },
		"control":       func(k *access.Key) { k.Name = "a\x1b[2J" },
		"not UTF-8":     func(k *access.Key) { k.Name = "a\xff" },
	} {
		k, _ := newKey(fresh())
		spoil(&k)
		_, err := s.CreateKey(t.Context(), k)
		require.Error(t, err, name)
	}
}

func unknownID(t *testing.T, s access.Store) {
	id := access.Mint().ID()
	_, _, err := s.FindKey(t.Context(), id)
	require.ErrorIs(t, err, access.ErrNotFound)
	_, err = s.RevokeKey(t.Context(), id)
	require.ErrorIs(t, err, access.ErrNotFound)
}

func revoking(t *testing.T, s access.Store) {
	k, _ := newKey(fresh())
	created(t, s, k)
	first, err := s.RevokeKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.False(t, first.RevokeTime.Before(first.CreateTime))
	again, err := s.RevokeKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.Equal(t, first, again)
	found, now, err := s.FindKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.Equal(t, first, found)
	require.Equal(t, "revoked", found.Ended(now))
}

func keysByPages(t *testing.T, s access.Store) {
	mine, others := fresh(), fresh()
	want := map[string]bool{}
	for range 5 {
		k, _ := newKey(mine)
		want[created(t, s, k).ID] = true
		k, _ = newKey(others)
		created(t, s, k)
	}
	got := map[string]bool{}
	after := ""
	for pages := 0; ; pages++ {
		require.Less(t, pages, 4)
		page, err := s.ListKeys(t.Context(), mine, after, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 2)
		if len(page) == 0 {
			break
		}
		for _, k := range page {
			require.Equal(t, mine, k.Tenant)
			require.False(t, got[k.ID], "a page repeats a key")
			got[k.ID], after = true, k.ID
		}
	}
	require.Equal(t, want, got)
	require.GreaterOrEqual(t, len(all(t, s)), 10, "without a tenant, the keys of all")
}

// all reads the keys of all tenants.
func all(t *testing.T, s access.Store) (keys []access.Key) {
	for after := ""; ; after = keys[len(keys)-1].ID {
		page, err := s.ListKeys(t.Context(), "", after, 100)
		require.NoError(t, err)
		if len(page) == 0 {
			return keys
		}
		keys = append(keys, page...)
	}
}

func suspending(t *testing.T, s access.Store) {
	tenant := fresh()
	is := func(want bool) {
		t.Helper()
		got, err := s.Suspended(t.Context(), tenant, "ann")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	is(false)
	require.NoError(t, s.Suspend(t.Context(), tenant, "ann"))
	first := suspension(t, s, tenant, "ann")
	require.WithinDuration(t, time.Now(), first.CreateTime, time.Minute)
	require.NoError(t, s.Suspend(t.Context(), tenant, "ann"))
	require.Equal(t, first, suspension(t, s, tenant, "ann"))
	is(true)
	was, err := s.Reinstate(t.Context(), tenant, "ann")
	require.NoError(t, err)
	require.True(t, was)
	is(false)
	was, err = s.Reinstate(t.Context(), tenant, "ann")
	require.NoError(t, err)
	require.False(t, was)
}

func suspensionIsOfOne(t *testing.T, s access.Store) {
	mine, others := fresh(), fresh()
	require.NoError(t, s.Suspend(t.Context(), mine, "ann"))
	for _, who := range [][2]string{{mine, "ben"}, {others, "ann"}, {mine, "an"}, {mine, ""}} {
		is, err := s.Suspended(t.Context(), who[0], who[1])
		require.NoError(t, err)
		require.False(t, is, who)
	}
}

// suspension finds one in the list.
func suspension(t *testing.T, s access.Store, tenant, subject string) access.Suspension {
	t.Helper()
	for _, one := range suspended(t, s) {
		if one.Tenant == tenant && one.Subject == subject {
			return one
		}
	}
	require.Fail(t, "not in the list")
	return access.Suspension{}
}

// suspended reads all suspensions, in pages of two.
func suspended(t *testing.T, s access.Store) (list []access.Suspension) {
	t.Helper()
	for after := (access.Suspension{}); ; after = list[len(list)-1] {
		page, err := s.ListSuspended(t.Context(), after, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 2)
		if len(page) == 0 {
			return list
		}
		list = append(list, page...)
	}
}

func suspensionsByPages(t *testing.T, s access.Store) {
	tenants := []string{fresh(), fresh()}
	for _, tenant := range tenants {
		for _, subject := range []string{"ann", "ben", "cat"} {
			require.NoError(t, s.Suspend(t.Context(), tenant, subject))
		}
	}
	count := map[string]int{}
	for _, one := range suspended(t, s) {
		count[one.Tenant+" "+one.Subject]++
	}
	for _, tenant := range tenants {
		for _, subject := range []string{"ann", "ben", "cat"} {
			require.Equal(t, 1, count[tenant+" "+subject])
		}
	}
}

func givenUp(t *testing.T, s access.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k, _ := newKey(fresh())
	_, err := s.CreateKey(ctx, k)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = s.FindKey(ctx, k.ID)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = s.FindKey(t.Context(), k.ID)
	require.ErrorIs(t, err, access.ErrNotFound)
}
