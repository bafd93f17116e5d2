package casetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns/storetest"
)

func TestAnEndingThatTheDatabaseRefusesOnceIsStoredAtTheNextTry(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(plain(8))
		faults.FailNext("End", errors.New("the database answered SQLSTATE 22021"))
		s.turn(ask(newID(), newID(), "hi"), nil).completes()
		require.GreaterOrEqual(t, faults.Calls("End"), 2)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qOpen: 0, qInFlight: 0})
	})
}
