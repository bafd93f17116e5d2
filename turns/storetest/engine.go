package storetest

import (
	"context"
	"testing"

	"github.com/turnd/turnd/turns"
)

// Engine is a fresh, migrated store and a way past it to its rows.
type Engine struct {
	Store turns.Store
	// Exec and Query run SQL on the same database. Query gives each row as the driver's values.
	Exec  func(ctx context.Context, sql string) error
	Query func(ctx context.Context, sql string) ([][]any, error)
	// ID is the SQL literal of an id.
	ID func(id [16]byte) string
	// Close closes the store. The opener closes it too at the end of the test, so closing twice must be harmless.
	Close func() error
	// Hold keeps what is written from going on until it is released. Pending is how many calls wait to be written or are being
	// written, and Commits how many transactions the store has begun.
	Hold    func(t testing.TB) (release func())
	Pending func() int
	Commits func() int64
}

// Opener makes an Engine that lives as long as the test.
type Opener func(t testing.TB) Engine

// promise is one sentence of the contract and the check of it.
type promise struct {
	name  string
	check func(t *testing.T, w *world)
}

// area is a part of the contract.
type area struct {
	name     string
	promises []promise
}

// Run checks the whole contract, each promise on a store that it has to itself. An opener may lend one again that is as good as new.
func Run(t *testing.T, open Opener) {
	for _, a := range areas() {
		t.Run(a.name, func(t *testing.T) {
			for _, p := range a.promises {
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					p.check(t, newWorld(t, open))
				})
			}
		})
	}
}

func areas() []area {
	return []area{
		{"leases", leases()},
		{"claims", claims()},
		{"indexes", indexes()},
		{"lookup", lookups()},
		{"path", paths()},
		{"path ends", pathEnds()},
		{"permits", permits()},
		{"calls", calls()},
		{"notes", notes()},
		{"ledger", ledgers()},
		{"checkpoints", checkpoints()},
		{"endings", endings()},
		{"fence", fences()},
		{"sweep", sweeps()},
		{"stops", stops()},
		{"line", lines()},
		{"beside", besides()},
		{"supersede", supersedes()},
		{"selects", selects()},
		{"owned", owned()},
		{"followed", followed()},
		{"returns", returns()},
		{"revive", revivals()},
		{"salvage", salvages()},
		{"settle", settlements()},
		{"take over", takeovers()},
		{"tell stories", stories()},
		{"restore", restores()},
		{"replace", replaces()},
		{"delete a conversation", conversationDeletions()},
		{"delete a turn", turnDeletions()},
		{"leaf", leaves()},
		{"held", helds()},
		{"backlog", backlogs()},
		{"resolve", resolutions()},
		{"transitions", transitions()},
		{"reader", readers()},
		{"logs", logs()},
		{"entries", entries()},
		{"conversations", conversations()},
		{"defaults", defaults()},
		{"spending", spending()},
		{"reservations", reservations()},
		{"settlements of quotas", quotaSettlements()},
		{"quotas at once", quotasAtOnce()},
		{"archives", archives()},
		{"tenancy", tenancy()},
		{"time", times()},
		{"unicode", unicodes()},
		{"concurrency", concurrency()},
		{"groups", groups()},
		{"context", contexts()},
	}
}
