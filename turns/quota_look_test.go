package turns

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatIsRememberedOfQuotasIsBoundedAndTheOldestGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q quotaLooks
		of := func(n int) *quotaLook { return q.of(Caller{Tenant: "t", Subject: strconv.Itoa(n)}) }
		first := of(0)
		for n := range 2 * maxQuotaLooks {
			of(n)
		}
		require.Len(t, q.all, maxQuotaLooks)
		require.Same(t, first, of(0))
		past := of(maxQuotaLooks)
		require.NotSame(t, past, of(maxQuotaLooks), "past the bound nothing is kept")
		time.Sleep(2 * lookEvery) // of a clock that nobody waits for
		require.Same(t, first, of(0), "it is used still")
		late := of(maxQuotaLooks)
		require.Same(t, late, of(maxQuotaLooks))
		require.Len(t, q.all, 2)
	})
}
