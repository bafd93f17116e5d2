package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxFile bounds a file in bytes. The roots of a whole operating system take a quarter of it.
const maxFile = 1 << 20

// Role is what a file is for.
type Role string

// The roles.
const (
	Certificate Role = "certificate" // a certificate, and those that lead to its root
	Key         Role = "key"         // the private key of the certificate
	Authorities Role = "authorities" // the certificates by which those of the other side are known to be good
)

// FileError says what is wrong with a file, in words that follow its name.
type FileError struct {
	Role    Role
	File    string
	Problem string
}

// Error implements error.
func (e *FileError) Error() string { return e.File + " " + e.Problem }

// ReadPair reads a certificate and its key. An error is a *FileError.
func ReadPair(certificate, key string) (tls.Certificate, error) {
	chain, err := read(Certificate, certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := read(Key, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return pair(chain, secret)
}

// ReadPool reads certificates that are to be trusted. An error is a *FileError.
func ReadPool(file string) (*x509.CertPool, error) {
	raw, err := read(Authorities, file)
	if err != nil {
		return nil, err
	}
	pool, _, err := authorities(raw)
	return pool, err
}

// content is what a file held when it was looked at.
type content struct {
	role Role
	file string
	raw  []byte
}

func (c content) problem(format string, args ...any) error {
	return &FileError{Role: c.role, File: c.file, Problem: fmt.Sprintf(format, args...)}
}

// read takes in a regular file. A pipe could be read once only, and might never end.
func read(role Role, file string) (content, error) {
	c := content{role: role, file: file}
	info, err := os.Stat(file)
	if err != nil {
		return c, c.problem("can't be read: %v", cause(err))
	}
	if !info.Mode().IsRegular() {
		return c, c.problem("is not a regular file")
	}
	f, err := os.Open(file)
	if err != nil {
		return c, c.problem("can't be read: %v", cause(err))
	}
	defer func() { _ = f.Close() }()
	c.raw, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return c, c.problem("can't be read: %v", cause(err))
	case len(c.raw) > maxFile:
		return c, c.problem("is larger than %d bytes", maxFile)
	}
	return c, nil
}

// cause leaves out the file's name, which goes before it.
func cause(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// blocks are the PEM blocks of a file. One that is cut off is an error: the rest of the file could still be on its way, and
// a chain without its end would be served to clients that then can't verify it.
func (c content) blocks() (found []*pem.Block, err error) {
	rest := c.raw
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		found = append(found, block)
	}
	switch {
	case bytes.Contains(rest, []byte("-----BEGIN ")):
		return nil, c.problem("holds a PEM block that is cut off or damaged")
	case len(bytes.TrimSpace(c.raw)) == 0:
		return nil, c.problem("is empty")
	case len(found) == 0:
		return nil, c.problem("is not PEM")
	}
	return found, nil
}

// certificates are those of a file, in its order; there is at least one.
func (c content) certificates() (found []*x509.Certificate, err error) {
	blocks, err := c.blocks()
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if b.Type != "CERTIFICATE" {
			continue
		}
		parsed, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, c.problem("holds a certificate that can't be read: %v", err)
		}
		found = append(found, parsed)
	}
	if len(found) == 0 {
		return nil, c.problem("holds no certificate, but a block of the type %s", blocks[0].Type)
	}
	return found, nil
}

// pair puts a certificate and its key together.
func pair(chain, secret content) (tls.Certificate, error) {
	if _, err := chain.certificates(); err != nil {
		return tls.Certificate{}, err
	}
	if err := secret.checkKey(); err != nil {
		return tls.Certificate{}, err
	}
	made, err := tls.X509KeyPair(chain.raw, secret.raw)
	switch {
	case err == nil:
		return made, nil
	case strings.Contains(err.Error(), "does not match"):
		return made, secret.problem("is not the key of the certificate in %s", chain.file)
	default:
		return made, secret.problem("holds a private key that can't be read")
	}
}

// checkKey finds what the standard library has no clear words for.
func (c content) checkKey() error {
	blocks, err := c.blocks()
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if !strings.HasSuffix(b.Type, "PRIVATE KEY") {
			continue
		}
		if strings.HasPrefix(b.Type, "ENCRYPTED") || b.Headers["DEK-Info"] != "" {
			return c.problem("holds a key that is encrypted, and there is nobody to ask for its passphrase")
		}
		return nil
	}
	return c.problem("holds no private key, but a block of the type %s", blocks[0].Type)
}

// authorities makes a pool of certificates to trust.
func authorities(c content) (*x509.CertPool, []*x509.Certificate, error) {
	found, err := c.certificates()
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	for _, a := range found {
		pool.AddCert(a)
	}
	return pool, found, nil
}
