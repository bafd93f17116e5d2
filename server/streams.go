package server

import (
	"context"
	"sync"
	"time"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
)

// streams knows which streams are open under which token, so that one which is no good any more ends them. One loop asks for
// all of them, each token once, one after another: ten thousand streams take no goroutine or timer each.
type streams struct {
	who   auth.Authenticator // nil: nothing is watched
	every time.Duration

	mu     sync.Mutex
	opened map[string]map[*watched]struct{} // by token
}

// watched is one open stream.
type watched struct {
	method string
	cut    context.CancelCauseFunc
}

func newStreams(who auth.Authenticator, every time.Duration) *streams {
	return &streams{who: who, every: every, opened: map[string]map[*watched]struct{}{}}
}

// watch adds a stream until leave. A stream without a token is not watched.
func (s *streams) watch(token, method string, cut context.CancelCauseFunc) (leave func()) {
	if s.who == nil || token == "" {
		return func() {}
	}
	w := &watched{method, cut}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened[token] == nil {
		s.opened[token] = map[*watched]struct{}{}
	}
	s.opened[token][w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.opened[token], w)
		if len(s.opened[token]) == 0 {
			delete(s.opened, token)
		}
	}
}

// run asks again and again until ctx ends.
func (s *streams) run(ctx context.Context) error {
	if s.who == nil {
		return nil
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.ask(ctx)
		}
	}
}

// ask asks about each token. Where that can't be found out now, streams go on and the next round asks again.
func (s *streams) ask(ctx context.Context) {
	for _, token := range s.tokens() {
		id, err := s.who.Authenticate(ctx, token)
		switch {
		case err == nil:
			s.cut(token, func(w *watched) error { return mayCall(id, w.method) })
		case turns.CodeOf(err) == turns.CodeUnauthenticated:
			s.cut(token, func(*watched) error { return err })
		case ctx.Err() != nil || turns.CodeOf(err) == turns.CodeStoreUnavailable:
			return
		}
	}
}

func (s *streams) tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tokens := make([]string, 0, len(s.opened))
	for token := range s.opened {
		tokens = append(tokens, token)
	}
	return tokens
}

// cut ends those streams of a token for which why gives a reason.
func (s *streams) cut(token string, why func(*watched) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.opened[token] {
		if err := why(w); err != nil {
			w.cut(err)
		}
	}
}
