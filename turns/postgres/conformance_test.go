package postgres

import (
	"testing"

	"github.com/turnd/turnd/turns/storetest"
)

func TestConformance(t *testing.T) { storetest.Run(t, engine) }

func engine(t testing.TB) storetest.Engine {
	d := open(t)
	return storetest.Engine{
		Store: d.store, Exec: d.exec, Query: d.query, ID: literal,
		Close: func() error { d.store.Close(); return nil },
	}
}
