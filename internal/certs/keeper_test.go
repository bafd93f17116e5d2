package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/certs"
	"github.com/turnd/turnd/internal/certs/certstest"
)

// every is the interval of the tests, which the clock of a bubble passes at once.
const every = 10 * time.Second

// bed is a keeper, the folder of its files, and what it has logged.
type bed struct {
	*certs.Keeper
	dir string
	log *bytes.Buffer
	mu  *sync.Mutex
	ca  *certstest.Authority
}

func (b *bed) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bed) count(words string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.log.String(), words)
}

// The lines of the log that tests count.
const (
	inForce = "TLS certificate is in force"
	refused = "TLS files are refused, those before stay in force"
)

// keep loads the files of a folder, with clients to be asked for a certificate if there is a ca.crt.
func keep(t *testing.T, dir string, ca *certstest.Authority) *bed {
	t.Helper()
	b := &bed{dir: dir, ca: ca, log: &bytes.Buffer{}, mu: &sync.Mutex{}}
	files := certs.Files{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	if _, err := os.Stat(filepath.Join(dir, "ca.crt")); err == nil {
		files.ClientCA = filepath.Join(dir, "ca.crt")
	}
	k, err := certs.Load(t.Context(), files, tls.VersionTLS12, slog.New(slog.NewTextHandler(b, nil)))
	require.NoError(t, err)
	b.Keeper = k
	return b
}

// shake makes a handshake of a real client, and gives the certificate it was shown, and how each side took it.
func (b *bed) shake(t *testing.T, client *tls.Config) (serial string, server, asked error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	ended := make(chan error, 1)
	go func() {
		defer far.Close()
		conn := tls.Server(far, b.Config())
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		ended <- err
	}()
	if client == nil {
		client = &tls.Config{}
	}
	client.RootCAs, client.ServerName = b.ca.Pool(), "localhost"
	conn := tls.Client(near, client)
	_, asked = io.ReadFull(conn, make([]byte, 1)) // which makes the handshake, and hears an alert after it
	if shown := conn.ConnectionState().PeerCertificates; len(shown) > 0 {
		serial = shown[0].SerialNumber.String()
	}
	near.Close()
	return serial, <-ended, asked
}

// serves requires a certificate to be the one that a new client is shown.
func (b *bed) serves(t *testing.T, p certstest.Pair) {
	t.Helper()
	serial, server, client := b.shake(t, nil)
	require.NoError(t, errors.Join(server, client))
	require.Equal(t, p.Serial(t), serial)
}

// running runs the keeper in the bubble of a test.
func (b *bed) running(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { b.Run(ctx, every) })
	t.Cleanup(func() {
		cancel()
		ran.Wait()
	})
}

// look lets one more look at the files happen.
func look() {
	time.Sleep(every)
	synctest.Wait()
}

func TestARenewedPairIsServedFromTheNextLookOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := certstest.NewAuthority(t), t.TempDir()
		first, second := ca.Issue(t), ca.Issue(t, certstest.Valid(time.Now().Add(-time.Minute), time.Now().Add(72*time.Hour)))
		first.Write(t, dir)
		b := keep(t, dir, ca)
		b.running(t)
		b.serves(t, first)
		look()
		require.Equal(t, 1, b.count(inForce), "files that stay as they are, are no news")

		second.Write(t, dir)
		b.serves(t, first)
		look()
		b.serves(t, second)
		require.Equal(t, 2, b.count(inForce))
		require.Equal(t, second.TLS(t).Leaf.NotAfter, b.Expires())
	})
}

func TestAPairOfWhichOnlyOneFileIsNewIsSaidOnceAndPickedUpWhenTheOtherIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := certstest.NewAuthority(t), t.TempDir()
		first, second := ca.Issue(t), ca.Issue(t)
		certificate, key := first.Write(t, dir)
		b := keep(t, dir, ca)
		b.running(t)

		certstest.Replace(t, certificate, second.Certificate)
		look()
		look()
		b.serves(t, first)
		require.Equal(t, 1, b.count(refused))
		require.Equal(t, 1, b.count("is not the key of the certificate"))

		require.NoError(t, os.WriteFile(key, second.Key[:len(second.Key)/2], 0o600)) // a tool that writes in place
		look()
		look()
		b.serves(t, first)
		require.Equal(t, 2, b.count(refused))
		require.Equal(t, 1, b.count("cut off"))

		require.NoError(t, os.Remove(key))
		look()
		b.serves(t, first)
		require.Equal(t, 3, b.count(refused))

		certstest.Replace(t, key, second.Key)
		look()
		b.serves(t, second)
		require.Equal(t, 3, b.count(refused))
		require.Equal(t, 2, b.count(inForce))
		require.Zero(t, b.count("BEGIN"))
	})
}

func TestAFileThatIsAsItWasAfterAFailureIsSaidToBeInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := certstest.NewAuthority(t), t.TempDir()
		first := ca.Issue(t)
		certificate, _ := first.Write(t, dir)
		b := keep(t, dir, ca)
		b.running(t)
		certstest.Replace(t, certificate, nil)
		look()
		require.Equal(t, 1, b.count(refused))
		certstest.Replace(t, certificate, first.Certificate)
		look()
		require.Equal(t, 2, b.count(inForce))
		certstest.Replace(t, certificate, nil)
		look()
		require.Equal(t, 2, b.count(refused), "the same failure again is news after it was over")
	})
}

func TestAFolderThatIsSwappedByASymlinkIsTakenWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := certstest.NewAuthority(t), t.TempDir()
		first, second := ca.Issue(t), ca.Issue(t)
		// A secret that is mounted in Kubernetes: the files lead through ..data to the folder of the version.
		point := func(p certstest.Pair, version string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
			p.Write(t, filepath.Join(dir, version))
			require.NoError(t, os.Symlink(version, filepath.Join(dir, "..tmp")))
			require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
		}
		point(first, "..1")
		for _, name := range []string{"tls.crt", "tls.key"} {
			require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
		}
		b := keep(t, dir, ca)
		b.running(t)
		b.serves(t, first)
		point(second, "..2")
		look()
		b.serves(t, second)
		require.Zero(t, b.count(refused))
	})
}

func TestAClientIsLetInByTheAuthoritiesInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, old, young, dir := certstest.NewAuthority(t), certstest.NewAuthority(t), certstest.NewAuthority(t), t.TempDir()
		ca.Issue(t).Write(t, dir)
		file := filepath.Join(dir, "ca.crt")
		certstest.Replace(t, file, old.Certificate)
		b := keep(t, dir, ca)
		b.running(t)
		sessions := tls.NewLRUClientSessionCache(4)
		as := func(p certstest.Pair) *tls.Config {
			return &tls.Config{Certificates: []tls.Certificate{p.TLS(t)}, ClientSessionCache: sessions}
		}
		known, stranger := old.Issue(t), young.Issue(t)
		_, server, client := b.shake(t, as(known))
		require.NoError(t, errors.Join(server, client))
		_, server, client = b.shake(t, as(stranger))
		require.ErrorContains(t, server, "certificate")
		require.Error(t, client)
		_, server, client = b.shake(t, nil)
		require.ErrorContains(t, server, "client didn't provide a certificate")
		require.ErrorContains(t, client, "certificate required")

		certstest.Replace(t, file, young.Certificate[:40])
		look()
		require.Equal(t, 1, b.count(refused))
		_, server, client = b.shake(t, as(known))
		require.NoError(t, errors.Join(server, client))

		certstest.Replace(t, file, young.Certificate)
		look()
		_, server, _ = b.shake(t, as(known))
		require.Error(t, server, "a session from before is no way in")
		_, server, client = b.shake(t, as(stranger))
		require.NoError(t, errors.Join(server, client))
	})
}

func TestAReloadThatIsAskedForAlwaysGetsAnAnswer(t *testing.T) {
	ca, dir := certstest.NewAuthority(t), t.TempDir()
	first := ca.Issue(t)
	_, key := first.Write(t, dir)
	b := keep(t, dir, ca)
	b.Reload(t.Context())
	require.Equal(t, 2, b.count(inForce))
	certstest.Replace(t, key, nil)
	b.Reload(t.Context())
	b.Reload(t.Context())
	require.Equal(t, 2, b.count(refused))
	b.serves(t, first)
}

func TestCertificatesThatAreNotValidNowAreServedWithAWarning(t *testing.T) {
	for words, change := range map[string]certstest.Change{
		"expired at":          certstest.Valid(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)),
		"is not valid before": certstest.Valid(time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)),
	} {
		ca, dir := certstest.NewAuthority(t), t.TempDir()
		ca.Issue(t, change).Write(t, dir)
		certstest.Replace(t, filepath.Join(dir, "ca.crt"), certstest.NewAuthority(t, change).Certificate)
		b := keep(t, dir, ca)
		require.Equal(t, 2, b.count(words))
		require.Equal(t, 2, b.count("level=WARN"))
		_, _, client := b.shake(t, nil)
		require.ErrorContains(t, client, "certificate")
	}
}

func TestVersionsBelowTheLeastAreNotSpoken(t *testing.T) {
	ca, dir := certstest.NewAuthority(t), t.TempDir()
	ca.Issue(t).Write(t, dir)
	b := keep(t, dir, ca)
	_, server, client := b.shake(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	require.ErrorContains(t, server, "unsupported versions")
	require.ErrorContains(t, client, "protocol version")
	_, server, client = b.shake(t, &tls.Config{MaxVersion: tls.VersionTLS12})
	require.NoError(t, errors.Join(server, client))
	k, err := certs.Load(t.Context(), certs.Files{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")},
		tls.VersionTLS13, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, server, client = (&bed{Keeper: k, ca: ca}).shake(t, &tls.Config{MaxVersion: tls.VersionTLS12})
	require.Error(t, server)
	require.ErrorContains(t, client, "protocol version")
}

func TestFilesThatCanNotBeServedAreRefusedAtTheStart(t *testing.T) {
	ca, dir := certstest.NewAuthority(t), t.TempDir()
	certificate, key := ca.Issue(t).Write(t, dir)
	_, err := certs.Load(t.Context(), certs.Files{Certificate: certificate, Key: key, ClientCA: key}, tls.VersionTLS12, slog.New(slog.DiscardHandler))
	var bad *certs.FileError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, certs.Authorities, bad.Role)
}
