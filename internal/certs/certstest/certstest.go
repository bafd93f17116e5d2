// Package certstest makes certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates.
type Authority struct {
	// Pair is its own.
	Pair
	leaf *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its key as PEM.
type Pair struct{ Certificate, Key []byte }

// Change changes what a certificate is going to say.
type Change func(*x509.Certificate)

// Name has it hold for a host alone, instead of localhost and 127.0.0.1.
func Name(host string) Change {
	return func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{host}, nil }
}

// Valid has it hold between two times, instead of for an hour from now.
func Valid(from, until time.Time) Change {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = from, until }
}

// NewAuthority makes an authority that nobody has heard of.
func NewAuthority(t testing.TB, change ...Change) *Authority {
	t.Helper()
	plan := template(t, change)
	plan.IsCA, plan.BasicConstraintsValid, plan.KeyUsage = true, true, x509.KeyUsageCertSign
	a := &Authority{}
	a.Pair, a.key = sign(t, plan, nil)
	block, _ := pem.Decode(a.Certificate)
	var err error
	a.leaf, err = x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return a
}

// Issue signs a certificate that is good for both sides.
func (a *Authority) Issue(t testing.TB, change ...Change) Pair {
	t.Helper()
	plan := template(t, change)
	plan.KeyUsage = x509.KeyUsageDigitalSignature
	plan.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	p, _ := sign(t, plan, a)
	return p
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.leaf)
	return pool
}

// TLS is the pair as the standard library has it.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Certificate, p.Key)
	require.NoError(t, err)
	return c
}

// Serial tells certificates apart.
func (p Pair) Serial(t testing.TB) string {
	t.Helper()
	return p.TLS(t).Leaf.SerialNumber.String()
}

// Write writes the pair to tls.crt and tls.key of a folder, and gives their paths.
func (p Pair) Write(t testing.TB, dir string) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	Replace(t, certificate, p.Certificate)
	Replace(t, key, p.Key)
	return certificate, key
}

// Replace renames a whole file into place.
func Replace(t testing.TB, file string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", content, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func template(t testing.TB, change []Change) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "turnd test " + serial.String()},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, apply := range change {
		apply(c)
	}
	return c
}

// sign makes a key and a certificate of it, signed by an authority or by itself.
func sign(t testing.TB, plan *x509.Certificate, by *Authority) (Pair, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	parent, signer := plan, key
	if by != nil {
		parent, signer = by.leaf, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, parent, key.Public(), signer)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, key
}
