package migrations_test

import (
	"testing"

	"github.com/turnd/turnd/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
