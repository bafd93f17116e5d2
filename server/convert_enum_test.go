package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

type wireEnum interface {
	~int32
	protoreflect.Enum
}

// holds checks a table against the generated enum: as many entries, numbered without a gap, no value twice, and back
// again. missing is how many of the enum's last values the domain lacks.
func holds[W wireEnum, D ~string](t *testing.T, table enum[W, D], missing int) {
	t.Helper()
	var zero W
	values := zero.Descriptor().Values()
	require.Len(t, table, values.Len()-missing, "%s", zero.Descriptor().FullName())
	for i := range values.Len() - missing {
		number := W(values.Get(i).Number())
		require.EqualValues(t, i, number)
		d, ok := table.domain(number)
		require.True(t, ok)
		require.Equal(t, i == 0, d == "", "%s", values.Get(i).Name())
		require.Equal(t, number, table.wire(d), "%s", values.Get(i).Name())
	}
	_, ok := table.domain(W(values.Len()))
	require.False(t, ok)
	_, ok = table.domain(-1)
	require.False(t, ok)
	require.Zero(t, table.wire("never heard of"))
}

func TestEveryEnumOfTheWireHasItsValuesInTheDomainAndBack(t *testing.T) {
	holds(t, statuses, 0)
	holds(t, abandonReasons, 0)
	holds(t, stopReasons, 0)
	holds(t, tokenSources, 0)
	holds(t, advices, 0)
	holds(t, onBusies, 0)
	holds(t, onDisconnects, 0)
	holds(t, onAmbiguouses, 0)
	holds(t, onPartials, 0)
	holds(t, deliverySources, 0)
	holds(t, blockKinds, 0)
	holds(t, toolChoiceModes, 0)
	holds(t, callClasses, 0)
	holds(t, callTries, 0)
	holds(t, takeoverWays, 0)
	holds(t, deliveryResults, 0)
}

func TestTheReasonsOfTheDomainStandInTheOrderOfTheWire(t *testing.T) {
	for i, r := range turns.Reasons {
		require.Equal(t, turnsv1.AbandonReason(i+1), abandonReasons.wire(r))
	}
}

func TestWhatTheTwoSidesCallAValueAgrees(t *testing.T) {
	require.Equal(t, turnsv1.ReplyStatus_REPLY_STATUS_IN_FLIGHT, statuses.wire(turns.StatusInFlight))
	require.Equal(t, turnsv1.ReplyStatus_REPLY_STATUS_HELD, statuses.wire(turns.StatusHeld))
	require.Equal(t, turnsv1.AbandonReason_ABANDON_REASON_HELD_RELEASED, abandonReasons.wire(turns.ReasonHeldReleased))
	require.Equal(t, turnsv1.StopReason_STOP_REASON_PAUSE, stopReasons.wire(turns.StopPause))
	require.Equal(t, turnsv1.OnBusy_ON_BUSY_SUPERSEDE, onBusies.wire(turns.OnBusySupersede))
	require.Equal(t, turnsv1.BlockKind_BLOCK_KIND_REFUSAL, blockKinds.wire(turns.KindRefusal))
	require.Equal(t, turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED, deliveryResults.wire(turns.ResultRetried))
	for w, name := range turnsv1.RetryAdvice_name {
		d, _ := advices.domain(turnsv1.RetryAdvice(w))
		if d != turns.AdviceNone {
			require.Equal(t, name, "RETRY_ADVICE_"+string(d))
		}
	}
}
