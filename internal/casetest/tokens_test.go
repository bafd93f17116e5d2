package casetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/server/auth/oidc"
)

// identityProvider issues tokens, and shows the key they are signed by while it is up.
type identityProvider struct {
	t    *testing.T
	url  string
	key  *ecdsa.PrivateKey
	down atomic.Bool
}

func newIdentityProvider(t *testing.T) *identityProvider {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := &identityProvider{t: t, key: key}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *identityProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.down.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/keys":
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "one", Use: "sig"}}})
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.url, "jwks_uri": p.url + "/keys"})
	}
}

// signIn is the context of a caller with a token.
func (p *identityProvider) signIn(ctx context.Context, tenant, subject, scope string, lasts time.Duration) context.Context {
	claims, err := json.Marshal(map[string]any{"iss": p.url, "aud": []string{"turnd"}, "sub": subject, "tenant": tenant, "scope": scope,
		"exp": time.Now().Add(lasts).Unix()})
	require.NoError(p.t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "one"}}, nil)
	require.NoError(p.t, err)
	jws, err := signer.Sign(claims)
	require.NoError(p.t, err)
	token, err := jws.CompactSerialize()
	require.NoError(p.t, err)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// trust has the next server take an identity provider's tokens.
func (w *world) trust(p *identityProvider) {
	tokens, err := oidc.New(oidc.Config{Issuer: p.url, Audience: []string{"turnd"}, TenantClaim: "tenant"})
	require.NoError(w.t, err)
	w.t.Cleanup(tokens.Close)
	w.auth, w.who = "oidc", auth.Kinds{Tokens: tokens}
}

func TestATokenDecidesWhoseTurnsACallerSeesAndWhatItMayDo(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		p := newIdentityProvider(t)
		w.trust(p)
		w.script(plain(8))
		server := w.serve()
		conversation, turn := newID(), newID()
		request := &turnsv1.TurnRequest{Input: ask(conversation, turn, "hello")}
		reading := &turnsv1.GetTurnRequest{ConversationId: conversation, Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turn}}

		ada := p.signIn(w.ctx, "acme", "ada", "openid turns read", time.Hour)
		stream, err := server.turns.Turn(ada, request)
		require.NoError(t, err)
		for err == nil {
			_, err = stream.Recv()
		}
		require.ErrorIs(t, err, io.EOF)
		w.paid(1, 1)

		bob := p.signIn(w.ctx, "acme", "bob", "read", time.Hour)
		got, err := server.turns.GetTurn(bob, reading)
		require.NoError(t, err)
		require.NotEmpty(t, stored(got.GetReplies()[0]))
		_, err = server.turns.SubmitTurn(bob, &turnsv1.SubmitTurnRequest{Input: ask(conversation, newID(), "more")})
		require.Equal(t, "turns", w.fails(err, codes.PermissionDenied, "SCOPE_MISSING", "DO_NOT_RETRY")["scope"])
		_, err = server.turns.GetTurn(p.signIn(w.ctx, "acme", "cleo", "openid", time.Hour), reading)
		require.Equal(t, "read", w.fails(err, codes.PermissionDenied, "SCOPE_MISSING", "DO_NOT_RETRY")["scope"])

		eve := p.signIn(w.ctx, "globex", "ada", "turns read operator", time.Hour)
		_, err = server.turns.GetTurn(eve, reading)
		w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		listed, err := server.convs.ListConversations(eve, &turnsv1.ListConversationsRequest{})
		require.NoError(t, err)
		require.Empty(t, listed.GetConversations())

		_, err = server.turns.GetTurn(p.signIn(w.ctx, "acme", "ada", "read", -time.Hour), reading)
		w.fails(err, codes.Unauthenticated, "UNAUTHENTICATED", "DO_NOT_RETRY")
		require.ErrorContains(t, err, "has expired")
		_, err = server.turns.GetTurn(newIdentityProvider(t).signIn(w.ctx, "acme", "ada", "read", time.Hour), reading)
		require.ErrorContains(t, err, "from another issuer")
		w.stands(map[string]int{qUsers: 1, qReplies: 1})
	})
}

func TestAnIdentityProviderThatIsDownMakesCallersWaitAndStoresNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		p := newIdentityProvider(t)
		p.down.Store(true)
		w.trust(p)
		w.script(plain(8))
		server := w.serve()
		ada := p.signIn(w.ctx, "acme", "ada", "turns read", time.Hour)
		request := &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hello")}

		_, err := server.turns.SubmitTurn(ada, request)
		w.fails(err, codes.Unavailable, "IDENTITY_UNAVAILABLE", "SAME_ID_AFTER_WAIT")
		require.Positive(t, waitOf(t, err))
		health, err := grpc_health_v1.NewHealthClient(server.harness.Conn).Check(w.ctx, &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health.GetStatus())
		w.stands(map[string]int{qUsers: 0, qConvs: 0})

		p.down.Store(false)
		w.eventually(func() bool {
			_, err := server.turns.SubmitTurn(ada, request)
			return err == nil
		})
		w.stands(map[string]int{qUsers: 1})
	})
}

// waitOf is the wait that a status advises.
func waitOf(t *testing.T, err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			return retry.GetRetryDelay().AsDuration()
		}
	}
	require.Fail(t, "no RetryInfo", "%v", err)
	return 0
}
