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
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
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
		old, next := oidctest.NewKey(t, "old"), oidctest.NewKey(t, "next")
		i, cfg := inMemory(t, old)
		a := open(t, cfg)
		token := old.Token(t, i.claims())
		isGood(t, a, token)
		i.Publish(t, next)
		time.Sleep(time.Minute)
		isGood(t, a, token)
		time.Sleep(9 * time.Minute)
		refusal(t, a, token, "unknown key")
		isGood(t, a, next.Token(t, i.claims()))
	})
}

func TestANewKeyIsGoodAtItsFirstToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old, next := oidctest.NewKey(t, "old"), oidctest.NewKey(t, "next")
		i, cfg := inMemory(t, old)
		a := open(t, cfg)
		isGood(t, a, old.Token(t, i.claims()))
		time.Sleep(time.Minute)
		i.Publish(t, old, next)
		isGood(t, a, next.Token(t, i.claims()))
		isGood(t, a, old.Token(t, i.claims()))
		require.EqualValues(t, 2, i.Reads.Load())
	})
}

func TestANewKeyIsGoodThoughAStrangersMadeTheKeysBeReadJustBefore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old, next := oidctest.NewKey(t, "old"), oidctest.NewKey(t, "next")
		i, cfg := inMemory(t, old)
		a := open(t, cfg)
		isGood(t, a, old.Token(t, i.claims()))
		time.Sleep(time.Minute)
		refusal(t, a, oidctest.NewKey(t, "stranger").Token(t, i.claims()), "unknown key")
		i.Publish(t, old, next)
		isGood(t, a, next.Token(t, i.claims()))
		require.EqualValues(t, 3, i.Reads.Load())
	})
}

func TestAFloodOfUnknownKeysIsNoFloodOfReads(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		a := open(t, cfg)
		token := k.Token(t, i.claims())
		isGood(t, a, token)
		var flood sync.WaitGroup
		for n := range 300 {
			stranger := oidctest.NewKey(t, fmt.Sprint("stranger", n)).Token(t, i.claims())
			flood.Go(func() { refusal(t, a, stranger, "unknown key") })
			isGood(t, a, token)
			time.Sleep(100 * time.Millisecond)
		}
		flood.Wait()
		// Half a minute has passed since the first read, and ten were asked for in each second.
		require.LessOrEqual(t, i.Reads.Load(), int64(32))
	})
}

func TestAReadThatHangsHoldsUpOnlyWhoNeedsIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		a := open(t, cfg)
		isGood(t, a, k.Token(t, i.claims()))
		time.Sleep(time.Minute)
		i.Answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

		var waiting sync.WaitGroup
		stranger := oidctest.NewKey(t, "stranger").Token(t, i.claims())
		waiting.Go(func() { mustWait(t, a, stranger) })
		leaving, leave := context.WithCancel(t.Context())
		waiting.Go(func() {
			_, err := a.Authenticate(leaving, stranger)
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		begun := time.Now()
		isGood(t, a, k.Token(t, i.claims(map[string]any{"sub": "bob"})))
		leave()
		synctest.Wait()
		require.Zero(t, time.Since(begun))
		waiting.Wait()
		require.LessOrEqual(t, time.Since(begun), 5*time.Second)
	})
}

func TestWhileTheKeysCantBeReadThoseThereAreGoForTheGrace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		a := open(t, cfg)
		token := k.Token(t, i.claims(map[string]any{"exp": seconds(5 * time.Hour)}))
		isGood(t, a, token)
		i.Fail()
		time.Sleep(59 * time.Minute)
		isGood(t, a, token)
		isGood(t, a, k.Token(t, i.claims()))
		mustWait(t, a, oidctest.NewKey(t, "stranger").Token(t, i.claims()))
		refusal(t, a, oidctest.NewKey(t, "k").Token(t, i.claims()), "signature is not that")
		time.Sleep(time.Minute + time.Millisecond)
		mustWait(t, a, token)
		mustWait(t, a, k.Token(t, i.claims()))
		refusal(t, a, k.Token(t, i.claims(map[string]any{"exp": 1})), "has expired")
		require.Less(t, i.Reads.Load(), int64(400))

		i.Publish(t, k)
		time.Sleep(11 * time.Second)
		isGood(t, a, token)
	})
}

func TestAnIssuerThatIsDownAtStartIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		i.Fail()
		a := open(t, cfg)
		mustWait(t, a, k.Token(t, i.claims()))
		time.Sleep(time.Minute)
		mustWait(t, a, k.Token(t, i.claims()))
		i.Publish(t, k)
		time.Sleep(10 * time.Second)
		isGood(t, a, k.Token(t, i.claims()))
	})
}

func TestTokensWithoutTheNameOfAKeyAreTriedWithEachThatFits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		first, second, next := oidctest.EdKey(t, ""), oidctest.NewKey(t, ""), oidctest.NewKey(t, "")
		i, cfg := inMemory(t, first, second)
		a := open(t, cfg)
		isGood(t, a, first.Token(t, i.claims()))
		isGood(t, a, second.Token(t, i.claims()))
		time.Sleep(time.Minute)
		i.Publish(t, next)
		isGood(t, a, next.Token(t, i.claims()))
	})
}

func TestATokenWithoutTheNameOfAKeyIsTriedWithAFewKeysOnly(t *testing.T) {
	var keys []oidctest.Key
	for range 9 {
		keys = append(keys, oidctest.NewKey(t, ""))
	}
	i := newIssuer(t, keys...)
	a := open(t, i.config())
	isGood(t, a, keys[7].Token(t, i.claims()))
	refusal(t, a, keys[8].Token(t, i.claims()), "unknown key")
}

func TestWhatIsNoKeySetTakesNoKeyAway(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	whole := oidctest.JWKS(t, k)
	for name, body := range map[string][]byte{
		"empty": {}, "half": whole[:len(whole)/2], "without keys": []byte(`{"keys":[]}`), "another document": []byte(`{}`), "a page": []byte("<html>"),
		"only keys of other uses": []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"new"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				i, cfg := inMemory(t, k)
				a := open(t, cfg)
				isGood(t, a, k.Token(t, i.claims()))
				i.Say(body)
				time.Sleep(20 * time.Minute)
				isGood(t, a, k.Token(t, i.claims()))
				mustWait(t, a, oidctest.NewKey(t, "stranger").Token(t, i.claims()))
			})
		})
	}
}

func TestCloseEndsAReadAndThoseWhoWaitForIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		i.Answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		a := open(t, cfg)
		var waiting sync.WaitGroup
		waiting.Go(func() { mustWait(t, a, k.Token(t, i.claims())) })
		synctest.Wait()
		begun := time.Now()
		a.Close()
		waiting.Wait()
		require.Zero(t, time.Since(begun))
		mustWait(t, a, k.Token(t, i.claims()))
	})
}
