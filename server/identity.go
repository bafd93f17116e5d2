package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/turns"
)

// Metadata by which a caller names itself where nobody is asked to prove who it is.
const (
	tenantHeader  = "x-turnd-tenant"
	subjectHeader = "x-turnd-subject"
)

// defaultIdentity is the tenant and the subject of a caller that names none.
const defaultIdentity = "default"

// maxIdentity bounds a tenant's or subject's name in bytes.
const maxIdentity = 128

// CheckAuth says whether a server may listen at an address with a mode of authentication. "none" believes every caller
// and is refused off loopback; "keys" and "oidc" are not built.
func CheckAuth(mode, listen string) error {
	switch mode {
	case "", "none":
	case "keys", "oidc":
		return fmt.Errorf("auth %q is not built yet; use none, on a loopback address", mode)
	default:
		return errors.New("auth must be one of none, keys, oidc")
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("auth none is refused on %q, which is not loopback: anyone who reaches it could name any tenant", listen)
	}
	return nil
}

// callerByName takes a caller at its word, so that one machine can play several tenants.
func callerByName(ctx context.Context) (turns.Caller, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	tenant, err := identityFrom(md, tenantHeader)
	if err != nil {
		return turns.Caller{}, err
	}
	subject, err := identityFrom(md, subjectHeader)
	return turns.Caller{Tenant: turns.Tenant(tenant), Subject: subject}, err
}

func identityFrom(md metadata.MD, header string) (string, error) {
	values := md.Get(header)
	if len(values) == 0 {
		return defaultIdentity, nil
	}
	if len(values) > 1 {
		return "", &turns.Error{Code: turns.CodeInvalidField, Field: header, Problem: "is given more than once"}
	}
	if n := len(values[0]); n == 0 || n > maxIdentity || !printable(values[0]) {
		return "", &turns.Error{Code: turns.CodeInvalidField, Field: header,
			Problem: fmt.Sprintf("must be 1 to %d printable ASCII characters", maxIdentity)}
	}
	return values[0], nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
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
