package certs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Files are those of a server.
type Files struct {
	Certificate, Key string
	// ClientCA, if not empty, has a certificate asked of every client, which one of these must have signed.
	ClientCA string
}

// Keeper keeps in force what its files say. Make it by Load.
type Keeper struct {
	files      Files
	minVersion uint16
	log        *slog.Logger
	clock      func() time.Time
	inForce    atomic.Pointer[set]

	mu      sync.Mutex // one look at a time
	refused string     // why the files are not in force, as it was last said; empty if they are
}

// set is what one look found.
type set struct {
	config  *tls.Config
	sum     [sha256.Size]byte
	leaf    *x509.Certificate
	clients []*x509.Certificate
}

// Load reads the files. An error is a *FileError. Versions of TLS below minVersion are not spoken.
func Load(ctx context.Context, files Files, minVersion uint16, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{files: files, minVersion: minVersion, log: log, clock: time.Now}
	now, err := k.look()
	if err != nil {
		return nil, err
	}
	k.adopt(ctx, now)
	return k, nil
}

// Config is for a server: each handshake gets what is in force when it begins.
func (k *Keeper) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         k.minVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.inForce.Load().config, nil },
	}
}

// Expires is when the certificate in force does.
func (k *Keeper) Expires() time.Time { return k.inForce.Load().leaf.NotAfter }

// Run looks at the files at an interval until ctx ends.
func (k *Keeper) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.check(ctx, false)
		}
	}
}

// Reload looks at the files now, and says in the log what is in force in any case.
func (k *Keeper) Reload(ctx context.Context) { k.check(ctx, true) }

// check puts in force what is new and whole. What is not whole is said once, until it changes or somebody asks.
func (k *Keeper) check(ctx context.Context, asked bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := k.look()
	if err != nil {
		if said := k.refused; asked || said != err.Error() {
			k.refused = err.Error()
			k.log.ErrorContext(ctx, "TLS files are refused, those before stay in force", "problem", err.Error(),
				"not_after", k.Expires())
		}
		return
	}
	if asked || k.refused != "" || now.sum != k.inForce.Load().sum {
		k.adopt(ctx, now)
	}
	k.refused = ""
}

// look reads the files as they are. They are read whole each time: a time or a size may stay the same when the content
// does not.
func (k *Keeper) look() (*set, error) {
	chain, err := read(Certificate, k.files.Certificate)
	if err != nil {
		return nil, err
	}
	secret, err := read(Key, k.files.Key)
	if err != nil {
		return nil, err
	}
	made, err := pair(chain, secret)
	if err != nil {
		return nil, err
	}
	s := &set{leaf: made.Leaf, config: &tls.Config{MinVersion: k.minVersion, Certificates: []tls.Certificate{made}}}
	sum := sha256.New()
	parts := [][]byte{chain.raw, secret.raw}
	if k.files.ClientCA != "" {
		trusted, err := read(Authorities, k.files.ClientCA)
		if err != nil {
			return nil, err
		}
		if s.config.ClientCAs, s.clients, err = authorities(trusted); err != nil {
			return nil, err
		}
		s.config.ClientAuth = tls.RequireAndVerifyClientCert
		// A ticket would let a client in that was verified by a CA which is not trusted any more.
		s.config.SessionTicketsDisabled = true
		parts = append(parts, trusted.raw)
	}
	for _, p := range parts {
		one := sha256.Sum256(p)
		_, _ = sum.Write(one[:])
	}
	sum.Sum(s.sum[:0])
	return s, nil
}

// adopt puts a set in force and says what it is. All that it says is public.
func (k *Keeper) adopt(ctx context.Context, s *set) {
	k.inForce.Store(s)
	print := sha256.Sum256(s.leaf.Raw)
	k.log.InfoContext(ctx, "TLS certificate is in force", "file", k.files.Certificate, "not_after", s.leaf.NotAfter,
		"sha256", hex.EncodeToString(print[:8]), "client_cas", len(s.clients))
	k.warn(ctx, k.files.Certificate, s.leaf)
	for _, ca := range s.clients {
		k.warn(ctx, k.files.ClientCA, ca)
	}
}

// warn tells of a certificate that the other side, or this one, will not take.
func (k *Keeper) warn(ctx context.Context, file string, c *x509.Certificate) {
	problem := ""
	switch now := k.clock(); {
	case now.After(c.NotAfter):
		problem = fmt.Sprintf("expired at %s", c.NotAfter.Format(time.RFC3339))
	case now.Before(c.NotBefore):
		problem = fmt.Sprintf("is not valid before %s", c.NotBefore.Format(time.RFC3339))
	default:
		return
	}
	k.log.WarnContext(ctx, "a certificate is not valid now, and handshakes by it fail", "file", file, "problem", problem)
}
