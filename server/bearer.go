package server

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
)

// authorizationHeader carries a key or token, and bearer is its scheme.
const (
	authorizationHeader = "authorization"
	bearer              = "Bearer"
)

// howToProve ends every refusal for what was sent: what to send instead.
const howToProve = `; send one header "authorization: Bearer <key or token>"`

// bearerToken takes the key or token out of a call's metadata. What is refused here was not looked at further, and is not repeated.
func bearerToken(md metadata.MD) (string, error) {
	values := md.Get(authorizationHeader)
	switch {
	case len(values) == 0:
		return "", auth.Refuse("this server wants to know who calls" + howToProve)
	case len(values) > 1:
		return "", auth.Refuse("there is more than one authorization header" + howToProve)
	case len(values[0]) > len(bearer)+1+auth.MaxToken:
		return "", auth.Refuse(fmt.Sprintf("the authorization header is longer than a key or token can be, %d bytes%s", auth.MaxToken, howToProve))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	switch {
	case !strings.EqualFold(scheme, bearer):
		return "", auth.Refuse("the authorization header is of another scheme than Bearer" + howToProve)
	case token == "":
		return "", auth.Refuse("the authorization header has no key or token" + howToProve)
	case !visible(token):
		return "", auth.Refuse("the authorization header has characters in it that no key or token has" + howToProve)
	}
	return token, nil
}

// visible reports whether a text is of visible ASCII characters alone.
func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// byProof asks an authenticator who brings a call's token. Headers that name another tenant or subject are refused rather than
// passed over: whoever sends them means to act for somebody else.
func byProof(ctx context.Context, who auth.Authenticator, md metadata.MD) (auth.Identity, string, error) {
	token, err := bearerToken(md)
	if err != nil {
		return auth.Identity{}, "", err
	}
	id, err := who.Authenticate(ctx, token)
	if err != nil {
		return auth.Identity{}, "", err
	}
	for header, name := range map[string]string{tenantHeader: string(id.Caller.Tenant), subjectHeader: id.Caller.Subject} {
		for _, named := range md.Get(header) {
			if named != name {
				return auth.Identity{}, "", &turns.Error{Code: turns.CodeInvalidField, Field: header,
					Problem: "names another than the key or token that was sent; leave it out"}
			}
		}
	}
	return id, token, nil
}
