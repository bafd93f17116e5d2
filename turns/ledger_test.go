package turns

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestAPageOfTheLedgerHasOneBeginning(t *testing.T) {
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	id := CallID{UUID: uuid.New()}

	first := LedgerQuery{Filter: LedgerFilter{From: late}}.begun()
	require.Equal(t, LedgerQuery{Filter: LedgerFilter{From: late}, AfterTime: late}, first)

	next := LedgerQuery{Filter: LedgerFilter{From: early}, AfterTime: late, AfterID: id}.begun()
	require.Equal(t, LedgerQuery{Filter: LedgerFilter{From: late}, AfterTime: late, AfterID: id}, next)

	// A token from before the time asked for leads to none of what came before.
	stale := LedgerQuery{Filter: LedgerFilter{From: late}, AfterTime: early, AfterID: id}.begun()
	require.Equal(t, first, stale)

	require.Equal(t, LedgerQuery{}, LedgerQuery{}.begun())
}
