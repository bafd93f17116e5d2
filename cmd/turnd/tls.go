package main

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/turnd/turnd/internal/certs"
)

// TLS is how the listeners for clients are served; without a certificate, in the clear.
type TLS struct {
	TLSCert       string `name:"tls-cert" env:"TURND_TLS_CERT" placeholder:"FILE" help:"Certificate (PEM) of --listen and --web-listen, with those that lead to its root. It is looked at again every 10 s and at SIGHUP."`
	TLSKey        string `name:"tls-key" env:"TURND_TLS_KEY" placeholder:"FILE" help:"Private key (PEM) of --tls-cert."`
	TLSClientCA   string `name:"tls-client-ca" env:"TURND_TLS_CLIENT_CA" placeholder:"FILE" help:"Certificates (PEM) of which one must have signed each client's own; without it, none is asked for. It does not say who calls."`
	TLSMinVersion string `name:"tls-min-version" env:"TURND_TLS_MIN_VERSION" default:"1.2" placeholder:"VERSION" help:"Oldest version of TLS: 1.2 or 1.3."`
}

// tlsVersions are the values of --tls-min-version.
var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// serveFiles are the flags of the files of serve.
var serveFiles = map[certs.Role]string{certs.Authorities: "--tls-client-ca", certs.Certificate: "--tls-cert", certs.Key: "--tls-key"}

// certsInterval is how often the files are looked at. They are small, and are renewed weeks before they are needed.
const certsInterval = 10 * time.Second

func (t TLS) on() bool { return t.TLSCert != "" }

// check finds what flags alone can tell.
func (t TLS) check() error {
	problems := []error{oneOf("--tls-min-version", t.TLSMinVersion, "1.2", "1.3")}
	if (t.TLSCert == "") != (t.TLSKey == "") {
		problems = append(problems, errors.New("--tls-cert, --tls-key: one goes with the other"))
	}
	if t.TLSClientCA != "" && !t.on() {
		problems = append(problems, errors.New("--tls-client-ca: goes with --tls-cert and --tls-key"))
	}
	return errors.Join(problems...)
}

// openCerts reads the certificate files, if there is to be TLS. It tells who has reason to know what goes without.
func (a *app) openCerts(ctx context.Context) error {
	if a.cfg.TLS.on() {
		files := certs.Files{Certificate: a.cfg.TLS.TLSCert, Key: a.cfg.TLS.TLSKey, ClientCA: a.cfg.TLS.TLSClientCA}
		kept, err := certs.Load(ctx, files, tlsVersions[a.cfg.TLS.TLSMinVersion], a.logger)
		a.certs = kept
		return flagOf(err, serveFiles)
	}
	if !isLoopback(localAddress(a.cfg.Listen)) {
		a.logger.WarnContext(ctx, "no TLS off loopback: keys, tokens and what is said travel in the clear unless a proxy in front ends TLS; "+
			"see --tls-cert", "listen", a.cfg.Listen)
	}
	return nil
}

// tlsConfig is what the server serves by; nil is in the clear.
func (a *app) tlsConfig() *tls.Config {
	if a.certs == nil {
		return nil
	}
	return a.certs.Config()
}

// keepCerts keeps in force what the files say, until ctx ends.
func (a *app) keepCerts(ctx context.Context) {
	if a.certs != nil {
		a.certs.Run(ctx, certsInterval)
	}
}
