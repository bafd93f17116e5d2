package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
	"github.com/turnd/turnd/turns"
)

// inBubble plays a test by a clock that goes on when all wait.
func inBubble(t *testing.T, play func(t *testing.T)) { synctest.Test(t, play) }

func isGood(t testing.TB, a *oidc.Authenticator, token string) {
	t.Helper()
	_, err := a.Authenticate(t.Context(), token)
	require.NoError(t, err)
}

// mustWait checks that the caller is told to ask again, and when.
func mustWait(t testing.TB, a *oidc.Authenticator, token string) {
	t.Helper()
	_, err := a.Authenticate(t.Context(), token)
	require.Equal(t, turns.CodeIdentityUnavailable, turns.CodeOf(err), "%v", err)
	var e *turns.Error
	require.True(t, errors.As(err, &e))
	require.GreaterOrEqual(t, e.RetryAfter, time.Second)
	require.LessOrEqual(t, e.RetryAfter, 10*time.Second)
}

func TestAKeyThatTheIssuerTakesBackIsGoodNoLongerThanTheLifetime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old, next := newKey(t, "old"), newKey(t, "next")
		i, cfg := inMemory(t, old)
		a := open(t, cfg)
		token := old.token(t, i.claims())
		isGood(t, a, token)
		i.publishes(t, next)
		time.Sleep(time.Minute)
		isGood(t, a, token)
		time.Sleep(9 * time.Minute)
		refusal(t, a, token, "unknown key")
		isGood(t, a, next.token(t, i.claims()))
	})
}

func TestANewKeyIsGoodAtItsFirstToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old, next := newKey(t, "old"), newKey(t, "next")
		i, cfg := inMemory(t, old)
		a := open(t, cfg)
		isGood(t, a, old.token(t, i.claims()))
		time.Sleep(time.Minute)
		i.publishes(t, old, next)
		isGood(t, a, next.token(t, i.claims()))
		isGood(t, a, old.token(t, i.claims()))
		require.EqualValues(t, 2, i.reads.Load())
	})
}

func TestAFloodOfUnknownKeysIsNoFloodOfReads(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKey(t, "k")
		i, cfg := inMemory(t, k)
		a := open(t, cfg)
		token := k.token(t, i.claims())
		isGood(t, a, token)
		var flood sync.WaitGroup
		for n := range 300 {
			stranger := newKey(t, fmt.Sprint("stranger", n)).token(t, i.claims())
			flood.Go(func() { refusal(t, a, stranger, "unknown key") })
			isGood(t, a, token)
			time.Sleep(100 * time.Millisecond)
		}
		flood.Wait()
		// Half a minute has passed since the first read.
		require.LessOrEqual(t, i.reads.Load(), int64(4))
	})
}

func TestAReadThatHangsHoldsUpOnlyWhoNeedsIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKey(t, "k")
		i, cfg := inMemory(t, k)
		a := open(t, cfg)
		isGood(t, a, k.token(t, i.claims()))
		time.Sleep(time.Minute)
		i.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

		var waiting sync.WaitGroup
		stranger := newKey(t, "stranger").token(t, i.claims())
		waiting.Go(func() { mustWait(t, a, stranger) })
		leaving, leave := context.WithCancel(t.Context())
		waiting.Go(func() {
			_, err := a.Authenticate(leaving, stranger)
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		begun := time.Now()
		isGood(t, a, k.token(t, i.claims(map[string]any{"sub": "bob"})))
		leave()
		synctest.Wait()
		require.Zero(t, time.Since(begun))
		waiting.Wait()
		require.LessOrEqual(t, time.Since(begun), 5*time.Second)
	})
}

func TestWhileTheKeysCantBeReadThoseThereAreGoForTheGrace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKey(t, "k")
		i, cfg := inMemory(t, k)
		a := open(t, cfg)
		token := k.token(t, i.claims(map[string]any{"exp": seconds(5 * time.Hour)}))
		isGood(t, a, token)
		i.isDown()
		time.Sleep(59 * time.Minute)
		isGood(t, a, token)
		isGood(t, a, k.token(t, i.claims()))
		mustWait(t, a, newKey(t, "stranger").token(t, i.claims()))
		refusal(t, a, newKey(t, "k").token(t, i.claims()), "signature is not that")
		time.Sleep(time.Minute + time.Millisecond)
		mustWait(t, a, token)
		mustWait(t, a, k.token(t, i.claims()))
		refusal(t, a, k.token(t, i.claims(map[string]any{"exp": 1})), "has expired")
		require.Less(t, i.reads.Load(), int64(400))

		i.publishes(t, k)
		time.Sleep(11 * time.Second)
		isGood(t, a, token)
	})
}

func TestAnIssuerThatIsDownAtStartIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKey(t, "k")
		i, cfg := inMemory(t, k)
		i.isDown()
		a := open(t, cfg)
		mustWait(t, a, k.token(t, i.claims()))
		time.Sleep(time.Minute)
		mustWait(t, a, k.token(t, i.claims()))
		i.publishes(t, k)
		time.Sleep(10 * time.Second)
		isGood(t, a, k.token(t, i.claims()))
	})
}

func TestTokensWithoutTheNameOfAKeyAreTriedWithEachThatFits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		first, second, next := edKey(t, ""), newKey(t, ""), newKey(t, "")
		i, cfg := inMemory(t, first, second)
		a := open(t, cfg)
		isGood(t, a, first.token(t, i.claims()))
		isGood(t, a, second.token(t, i.claims()))
		time.Sleep(time.Minute)
		i.publishes(t, next)
		isGood(t, a, next.token(t, i.claims()))
	})
}

func TestATokenWithoutTheNameOfAKeyIsTriedWithAFewKeysOnly(t *testing.T) {
	var keys []signing
	for range 9 {
		keys = append(keys, newKey(t, ""))
	}
	i := newIssuer(t, keys...)
	a := open(t, i.config())
	isGood(t, a, keys[7].token(t, i.claims()))
	refusal(t, a, keys[8].token(t, i.claims()), "unknown key")
}

func TestWhatIsNoKeySetTakesNoKeyAway(t *testing.T) {
	k := newKey(t, "k")
	whole := keySet(t, k)
	for name, body := range map[string][]byte{
		"empty": {}, "half": whole[:len(whole)/2], "without keys": []byte(`{"keys":[]}`), "another document": []byte(`{}`), "a page": []byte("<html>"),
		"only keys of other uses": []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"new"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				i, cfg := inMemory(t, k)
				a := open(t, cfg)
				isGood(t, a, k.token(t, i.claims()))
				i.says(body)
				time.Sleep(20 * time.Minute)
				isGood(t, a, k.token(t, i.claims()))
				mustWait(t, a, newKey(t, "stranger").token(t, i.claims()))
			})
		})
	}
}

func TestCloseEndsAReadAndThoseWhoWaitForIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKey(t, "k")
		i, cfg := inMemory(t, k)
		i.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		a := open(t, cfg)
		var waiting sync.WaitGroup
		waiting.Go(func() { mustWait(t, a, k.token(t, i.claims())) })
		synctest.Wait()
		begun := time.Now()
		a.Close()
		waiting.Wait()
		require.Zero(t, time.Since(begun))
		mustWait(t, a, k.token(t, i.claims()))
	})
}
