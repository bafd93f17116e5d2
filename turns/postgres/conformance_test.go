package postgres

import (
	"testing"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns/storetest"
)

func TestConformance(t *testing.T) { storetest.Run(t, engine) }

func TestTheStoreAgreesWithTheModel(t *testing.T) { storetest.RunModel(t, engine) }

func TestWhatMustHoldHoldsUnderACrowd(t *testing.T) { storetest.RunConcurrent(t, engine) }

func engine(t testing.TB) storetest.Engine {
	d := opened(t, pgtest.Reused(t, pgtest.Migrate))
	return storetest.Engine{
		Store: d.store, Exec: d.exec, Query: d.query, ID: literal,
		Close: func() error { d.store.Close(); return nil },
	}
}
