package server

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns/access"
)

// counting lets everybody in to read, and counts.
type counting struct{ asked map[string]int }

func (c counting) Authenticate(_ context.Context, token string) (auth.Identity, error) {
	c.asked[token]++
	return auth.Identity{Scopes: []access.Scope{access.ScopeRead}}, nil
}

func TestARoundAsksOnceForAllStreamsOfATokenAndNothingStaysOfThoseThatAreOver(t *testing.T) {
	c := counting{map[string]int{}}
	s := newStreams(c, time.Hour)
	var leave []func()
	for _, token := range []string{"one", "one", "one", "two"} {
		leave = append(leave, s.watch(token, "/turns.v1.TurnService/FollowReply", func(error) { t.Error("a stream was cut") }))
	}
	s.ask(t.Context())
	require.Equal(t, map[string]int{"one": 1, "two": 1}, c.asked)
	for _, l := range leave {
		l()
	}
	require.Empty(t, s.opened)
	s.ask(t.Context())
	require.Equal(t, map[string]int{"one": 1, "two": 1}, c.asked)
}
