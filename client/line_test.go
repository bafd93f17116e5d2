package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func atPlace(position int32) *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Queued{Queued: &turnsv1.Queued{Position: position}}}
}

func TestATurnThatWaitsInLineTellsEachPlaceOnceThroughLostConnections(t *testing.T) {
	const queued = turnsv1.DeliveryResult_DELIVERY_RESULT_QUEUED
	lost := fake.Refusal(codes.Unavailable, "DRAINING", "SAME_ID_NOW", time.Second)
	b := setup(t, nil, fake.Fail(lost, accepted(queued), atPlace(1), atPlace(0)), fake.Fail(lost, accepted(queued), atPlace(0)),
		fake.Play(fake.All(accepted(queued), atPlace(0), fake.Started(replyA, 1), hello, fake.Completed(hello))...))
	s := b.send(t)
	var places []int32
	got := watch(t.Context(), s, func(ev *turnsv1.Event) bool {
		if q := ev.GetQueued(); q != nil {
			places = append(places, q.GetPosition())
		}
		return true
	})
	require.NoError(t, got.err)
	require.Equal(t, []int32{1, 0}, places)
	require.Equal(t, "accepted", got.kinds[0])
	require.Equal(t, "Hello wörld", got.text)
	require.Equal(t, queued, s.Result())
	b.requireOneTurn(t, 3)
}
