package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns/access"
	"github.com/turnd/turnd/turns/postgres"
	"github.com/turnd/turnd/turns/sqlite"
)

// anybody is the subject in every tenant, so that nothing but the tenant tells callers apart.
const anybody = "anybody"

// proofs give callers of any tenant what a server asks of them: a name where it takes them at their word, a key where it wants
// keys.
type proofs struct {
	*lab
	e     engine
	keys  access.Store // nil: names do
	close func()
}

// proofs opens the keys of an engine, whose schema is there, beside the server that uses them.
func (l *lab) proofs(e engine, auth string) (*proofs, error) {
	p := &proofs{lab: l, e: e, close: func() {}}
	switch {
	case auth == server.AuthNone:
		return p, nil
	case e.driver == "sqlite":
		s, err := sqlite.OpenBeside(l.ctx, strings.TrimPrefix(e.url, "sqlite://"))
		if err != nil {
			return nil, err
		}
		p.keys, p.close = s, func() { _ = s.Close() }
	default:
		s, err := postgres.Open(l.ctx, postgres.Config{URL: e.dsn, MaxConns: 1}) // by a name of its own in the log
		if err != nil {
			return nil, err
		}
		p.keys, p.close = s, s.Close
	}
	return p, nil
}

// owner is a context in which a tenant calls; its key is made as people make one.
func (p *proofs) owner(tenant string) (context.Context, error) {
	if p.keys == nil {
		return p.caller(tenant)
	}
	create := exec.CommandContext(p.ctx, p.bin, "keys", "create", "--database-url", p.e.url, "--tenant", tenant, "--subject", anybody,
		"--scopes", access.FormatScopes(access.Scopes()))
	var said bytes.Buffer
	create.Stderr = &said
	out, err := create.Output()
	if err != nil {
		return nil, fmt.Errorf("turnd keys create: %w: %s", err, &said)
	}
	text, err := access.ParseText(strings.TrimSpace(string(out)))
	return p.bearing(text), err
}

// caller is a context in which a tenant calls. Its key is a new one, kept where turnd keys create keeps its: a process for each
// would take longer than all questions.
func (p *proofs) caller(tenant string) (context.Context, error) {
	if p.keys == nil {
		return metadata.AppendToOutgoingContext(p.ctx, "x-turnd-tenant", tenant, "x-turnd-subject", anybody), nil
	}
	text := access.Mint()
	_, err := p.keys.CreateKey(p.ctx, access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: tenant, Subject: anybody, Scopes: access.Scopes()})
	return p.bearing(text), err
}

func (p *proofs) bearing(text access.Text) context.Context {
	return metadata.AppendToOutgoingContext(p.ctx, "authorization", "Bearer "+text.Reveal())
}
