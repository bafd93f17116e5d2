package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/turnd/turnd/client"
	"github.com/turnd/turnd/internal/certs"
)

// dialFlags say where a service is, and how each side knows the other. Apart from the proof of who
// calls they have no variables: whom a person talks to is said on the command line.
type dialFlags struct {
	Server       string `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Where the service is. Off this machine it is spoken to by TLS."`
	TLS          bool   `name:"tls" help:"Speak TLS on this machine too, and trust the roots of the system."`
	CA           string `name:"ca" placeholder:"FILE" help:"Speak TLS, and trust the certificates of this PEM file instead."`
	Cert         string `name:"cert" placeholder:"FILE" help:"Speak TLS, and show this certificate (PEM) to a service that asks for one; with --client-key."`
	ClientKey    string `name:"client-key" placeholder:"FILE" help:"Private key (PEM) of --cert."`
	presentFlags `embed:""`
	Insecure     bool `help:"Speak without TLS to another machine: whoever is on the way reads everything, and can change it."`
}

// check finds what flags alone can tell.
func (f dialFlags) check() error {
	problems := []error{checkAddress("--server", f.Server)}
	if (f.Cert == "") != (f.ClientKey == "") {
		problems = append(problems, errors.New("--cert, --client-key: one goes with the other"))
	}
	if f.Insecure && f.wantsTLS() {
		problems = append(problems, errors.New("--insecure: can't go with --tls, --ca and --cert"))
	}
	return errors.Join(problems...)
}

func (f dialFlags) wantsTLS() bool { return f.TLS || f.CA != "" || f.Cert != "" }

// address is where to connect to.
func (f dialFlags) address() string { return localAddress(f.Server) }

// dial makes a connection by the flags. What the user should know of it goes to notes.
func (f dialFlags) dial(notes io.Writer, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	p, err := f.proof()
	if err != nil {
		return nil, err
	}
	return f.dialAs(p, notes, opts...)
}

// dialAs is dial with a proof that has been read: a pipe gives it once.
func (f dialFlags) dialAs(p proof, notes io.Writer, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	secure, err := f.security(notes)
	if err != nil {
		return nil, err
	}
	if p != "" {
		secure = append(secure, grpc.WithPerRPCCredentials(p))
	}
	return client.Dial(f.address(), append(secure, opts...)...)
}

// security says how to be sure of the other side. Without flags it is up to the client: TLS to other machines.
func (f dialFlags) security(notes io.Writer) ([]grpc.DialOption, error) {
	switch {
	case f.wantsTLS():
		config, err := certs.Client(certs.ClientFiles{CA: f.CA, Certificate: f.Cert, Key: f.ClientKey})
		if err != nil {
			return nil, usageError{flagOf(err, dialFiles)}
		}
		return []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}, nil
	case f.Insecure:
		if !isLoopback(f.address()) {
			fmt.Fprintf(notes, "turnd: --insecure: whoever is on the way to %s can read and change what is said\n", f.address())
		}
		return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, nil
	}
	return nil, nil
}

// dialFiles are the flags of a client's files.
var dialFiles = map[certs.Role]string{certs.Authorities: "--ca", certs.Certificate: "--cert", certs.Key: "--client-key"}

// flagOf names the flag of a file before what is wrong with it.
func flagOf(err error, flags map[certs.Role]string) error {
	if bad := (*certs.FileError)(nil); errors.As(err, &bad) {
		return fmt.Errorf("%s: %w", flags[bad.Role], err)
	}
	return err
}

// handshakes are what a failed connection says when the two sides do not agree on TLS, and what to do then.
var handshakes = []struct{ says, do string }{
	{"looked like an HTTP/1.1 header", "it may speak TLS only, see --tls and --ca"},
	{"does not look like a TLS handshake", "it speaks without TLS"},
	{"signed by unknown authority", "name who signed its certificate by --ca"},
	{"certificate required", "it asks for a certificate, see --cert and --client-key"},
}

// adviceOnTLS is what to do about a failed connection, to be put behind its words; empty if it is not about TLS.
func adviceOnTLS(words string) string {
	for _, h := range handshakes {
		if strings.Contains(words, h.says) {
			return "; " + h.do
		}
	}
	return ""
}
