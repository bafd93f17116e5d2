package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns/access"
)

// keyVariable holds the key or token to present. It has no flag: as one it would be seen by everybody who lists processes.
const keyVariable = "TURND_KEY"

// maxKeyFile bounds what is read of a key file.
const maxKeyFile = auth.MaxToken + 64

// presentFlags say by what the service is to know who calls.
type presentFlags struct {
	KeyFile string `env:"TURND_KEY_FILE" placeholder:"FILE" help:"File with the API key or bearer token to show to the service; without it, what the variable TURND_KEY holds, if anything."`
}

// proof is the key or token to present; empty for none.
func (f presentFlags) proof() (proof, error) {
	if f.KeyFile == "" {
		p, err := readProof(os.Getenv(keyVariable))
		return p, usageOf(flagged(keyVariable, err))
	}
	file, err := os.Open(f.KeyFile)
	if err != nil {
		return "", fmt.Errorf("--key-file: %w", err)
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return "", fmt.Errorf("--key-file: %w", err)
	}
	p, err := readProof(string(raw))
	if err == nil && p == "" {
		err = errors.New("holds no key")
	}
	return p, flagged("--key-file", err)
}

// readProof reads a key or token with blanks and ends of lines around it. A key must be whole: one of a file that is half written
// would be refused by the service, in words that don't tell why.
func readProof(raw string) (proof, error) {
	text := strings.TrimSpace(raw)
	switch {
	case len(text) > auth.MaxToken:
		return "", fmt.Errorf("holds more than a key or token can be, %d bytes", auth.MaxToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("must hold one key or token and nothing else")
	}
	if access.Looks(text) {
		if _, err := access.ParseText(text); err != nil {
			return "", err
		}
	}
	return proof(text), nil
}

// proof is a key or token that goes with each call. It is a secret, and no verb or log shows it.
type proof string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (p proof) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(p)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Whether there is TLS is for the flags of the connection.
func (p proof) RequireTransportSecurity() bool { return false }

// String implements fmt.Stringer.
func (p proof) String() string { return "***" }

// Format implements fmt.Formatter.
func (p proof) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.String()) }

// id tells keys apart without saying what they are; empty for none and for tokens, which change all the time.
func (p proof) id() string {
	text, err := access.ParseText(string(p))
	if err != nil {
		return ""
	}
	return text.ID()
}
