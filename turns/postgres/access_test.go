package postgres

import (
	"testing"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns/access"
	"github.com/turnd/turnd/turns/access/accesstest"
)

func TestTheStoreKeepsKeysAndSuspensions(t *testing.T) {
	accesstest.Run(t, func(t testing.TB) access.Store { return opened(t, pgtest.Reused(t, pgtest.Migrate)).store })
}
