package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// Metadata by which a caller names itself where nobody is asked to prove who it is.
const (
	tenantHeader  = "x-turnd-tenant"
	subjectHeader = "x-turnd-subject"
)

// defaultIdentity is the tenant and the subject of a caller that names none.
const defaultIdentity = string(turns.DefaultTenant)

// Modes of authentication.
const (
	AuthNone = "none"
	AuthKeys = "keys"
	AuthOIDC = "oidc"
)

// AuthModes reads a mode of authentication, or several with commas between them, and fails for an unknown one and for "none"
// beside another. Nothing is "none".
func AuthModes(text string) ([]string, error) {
	if text == "" {
		text = AuthNone
	}
	modes := strings.Split(text, ",")
	for i, mode := range modes {
		if slices.Contains(modes[:i], mode) {
			return nil, fmt.Errorf("auth names %s twice", mode)
		}
		if mode != AuthNone && mode != AuthKeys && mode != AuthOIDC {
			return nil, errors.New("auth must be one of none, keys, oidc, or keys,oidc")
		}
		if mode == AuthNone && len(modes) > 1 {
			return nil, errors.New("auth none can't go with another mode: it believes everybody")
		}
	}
	return modes, nil
}

// CheckAuth says whether a server may listen at an address with a mode of authentication. "none" believes every caller
// and is refused off loopback.
func CheckAuth(mode, listen string) error {
	modes, err := AuthModes(mode)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	if !slices.Contains(modes, AuthNone) {
		return nil
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("auth none is refused on %q, which is not loopback: anyone who reaches it could name any tenant", listen)
	}
	return nil
}

// byName takes callers at their word, and lets them do everything, so that one machine can play several tenants.
func byName(md metadata.MD) (auth.Identity, error) {
	tenant, err := identityFrom(md, tenantHeader)
	if err != nil {
		return auth.Identity{}, err
	}
	subject, err := identityFrom(md, subjectHeader)
	return auth.Identity{Caller: turns.Caller{Tenant: turns.Tenant(tenant), Subject: subject}, Scopes: access.Scopes()}, err
}

func identityFrom(md metadata.MD, header string) (string, error) {
	values := md.Get(header)
	if len(values) == 0 {
		return defaultIdentity, nil
	}
	if len(values) > 1 {
		return "", &turns.Error{Code: turns.CodeInvalidField, Field: header, Problem: "is given more than once"}
	}
	if err := access.CheckIdentity(values[0]); err != nil {
		return "", &turns.Error{Code: turns.CodeInvalidField, Field: header, Problem: err.Error()}
	}
	return values[0], nil
}

type callerKey struct{}

func withCaller(ctx context.Context, c turns.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is the caller that the gate let in. A context that did not pass the gate has the empty tenant, which owns
// nothing: no name that a client can send is empty.
func callerOf(ctx context.Context) turns.Caller {
	c, _ := ctx.Value(callerKey{}).(turns.Caller)
	return c
}
