package casetest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/auth/keys"
	"github.com/turnd/turnd/turns/access"
)

// shortLife is how long keys are remembered in these tests.
const shortLife = 20 * time.Millisecond

// keep has the next server know callers by the keys of its own store, which it gives.
func (w *world) keep() (*worker, access.Store) {
	store := w.store()
	kept := store.(access.Store)
	who, err := keys.New(keys.Config{Store: kept, Lifetime: shortLife})
	require.NoError(w.t, err)
	w.auth, w.who = "keys", who
	return w.serveOn(store), kept
}

// gives makes a key.
func (w *world) gives(kept access.Store, tenant, subject string, scopes ...access.Scope) access.Text {
	text := access.Mint()
	_, err := kept.CreateKey(w.ctx, access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: tenant, Subject: subject, Scopes: scopes})
	require.NoError(w.t, err)
	return text
}

// showing is a context that presents a key.
func (w *world) showing(text access.Text) context.Context {
	return metadata.AppendToOutgoingContext(w.ctx, "authorization", "Bearer "+text.Reveal())
}

// diary collects what is logged, at every level.
type diary struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.String()
}

func TestAKeyDecidesWhoseTurnsACallerSeesUntilItIsRevoked(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		var log diary
		w.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w.script(plain(8))
		server, kept := w.keep()
		ada := w.gives(kept, "acme", "ada", access.ScopeTurns, access.ScopeRead)
		bob := w.gives(kept, "acme", "bob", access.ScopeRead)
		eve := w.gives(kept, "globex", "ada", access.Scopes()...)
		ops := w.gives(kept, "acme", "ops", access.ScopeOperator)
		in := ask(newID(), newID(), "hello")
		stream, err := server.turns.Turn(w.showing(ada), &turnsv1.TurnRequest{Input: in})
		require.NoError(t, err)
		for err == nil {
			_, err = stream.Recv()
		}
		require.ErrorIs(t, err, io.EOF)

		reading := &turnsv1.GetTurnRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.GetTurnRequest_TurnId{TurnId: in.GetTurnId()}}
		_, err = server.turns.GetTurn(w.showing(bob), reading)
		require.NoError(t, err)
		_, err = server.turns.SubmitTurn(w.showing(bob), &turnsv1.SubmitTurnRequest{Input: ask(in.GetConversationId(), newID(), "more")})
		require.Equal(t, "turns", w.fails(err, codes.PermissionDenied, "SCOPE_MISSING", "DO_NOT_RETRY")["scope"])
		_, err = server.turns.GetTurn(w.showing(ops), reading)
		require.Equal(t, "read", w.fails(err, codes.PermissionDenied, "SCOPE_MISSING", "DO_NOT_RETRY")["scope"])

		missing := &turnsv1.GetTurnRequest{ConversationId: newID(), Target: reading.GetTarget()}
		_, foreign := server.turns.GetTurn(w.showing(eve), reading)
		_, none := server.turns.GetTurn(w.showing(eve), missing)
		require.Equal(t, status.Convert(none).Proto().String(), status.Convert(foreign).Proto().String())
		calls := func(text access.Text) int {
			got, err := turnsv1.NewOperatorServiceClient(server.harness.Conn).ListProviderCalls(w.showing(text), &turnsv1.ListProviderCallsRequest{})
			require.NoError(t, err)
			return len(got.GetCalls())
		}
		require.Equal(t, 1, calls(ops), "an operator sees the ledger of its own tenant")
		require.Zero(t, calls(eve))
		_, err = server.turns.GetTurn(metadata.AppendToOutgoingContext(w.showing(eve), "x-turnd-tenant", "acme"), reading)
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")

		_, err = kept.RevokeKey(w.ctx, ada.ID())
		require.NoError(t, err)
		w.eventually(func() bool {
			_, err := server.turns.GetTurn(w.showing(ada), reading)
			return status.Code(err) == codes.Unauthenticated
		})
		_, err = server.turns.GetTurn(w.showing(access.Mint()), reading)
		w.fails(err, codes.Unauthenticated, "UNAUTHENTICATED", "DO_NOT_RETRY")
		w.stands(map[string]int{qUsers: 1, qReplies: 1})
		w.paid(1, 1)
		for _, text := range []access.Text{ada, bob, eve, ops} {
			require.NotContains(t, log.String(), text.Reveal()[len(access.Prefix)+17:])
		}
	})
}
