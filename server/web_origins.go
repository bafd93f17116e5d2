package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// anyOrigin stands for all origins.
const anyOrigin = "*"

// preflightSeconds is how long a browser remembers that it may send something.
const preflightSeconds = 600

// origins are those whose pages may call from a browser.
type origins struct {
	allowed []string
	// believing says that nobody has to prove who calls, so that a page which gets through could do everything.
	believing bool
}

func (c Config) origins() origins {
	modes, _ := AuthModes(c.Auth)
	return origins{c.CORSOrigins, slices.Contains(modes, AuthNone)}
}

// CheckOrigins says whether origins can be allowed with a mode of authentication. Each is a scheme and a host, as a browser
// writes it, without the port that goes without saying, or there is "*" alone. "*" is refused where nobody proves who calls:
// then each page that a browser on this machine shows could read what is here, and spend. As a part of an origin it is refused
// always, since "http://*" would be the same by another name.
func CheckOrigins(mode string, allowed []string) error {
	modes, _ := AuthModes(mode) // CheckAuth complains of it
	for _, origin := range allowed {
		if origin == anyOrigin {
			if len(allowed) > 1 {
				return errors.New(`origin "*" stands for all; leave out the others`)
			}
			if slices.Contains(modes, AuthNone) {
				return errors.New(`origin "*" is refused with auth none: every page in a browser on this machine could read and send; name the origins`)
			}
			return nil
		}
		if !isOrigin(origin) {
			return fmt.Errorf("%q is no origin; write it as a browser does, such as https://chat.example.com", origin)
		}
	}
	return nil
}

// isOrigin reports an origin as a browser writes it. What is written in another way would be allowed and never come.
func isOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() == "" || strings.Contains(origin, anyOrigin) || strings.HasSuffix(origin, ":") {
		return false
	}
	usual, known := usualPorts[u.Scheme]
	return known && u.Port() != usual && u.Scheme+"://"+u.Host == origin && origin == strings.ToLower(origin)
}

// usualPorts are those that browsers leave out, by the schemes that a page can have.
var usualPorts = map[string]string{"http": "80", "https": "443"}

// guard lets in what comes from no page, from a page of this server, or from an allowed origin. Others are told nothing that a
// page could read, and can change nothing: a form needs no permission of CORS to be sent.
func (o origins) guard(next http.Handler) (http.Handler, error) {
	all := slices.Contains(o.allowed, anyOrigin)
	if !all {
		crossing := http.NewCrossOriginProtection()
		for _, origin := range o.allowed {
			if err := crossing.AddTrustedOrigin(origin); err != nil {
				return nil, fmt.Errorf("allow origin: %w", err)
			}
		}
		crossing.SetDenyHandler(http.HandlerFunc(refuseOrigin))
		next = crossing.Handler(next)
	}
	if len(o.allowed) > 0 {
		next = cors.New(cors.Options{
			AllowedOrigins:      o.allowed,
			AllowedMethods:      []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete},
			AllowedHeaders:      requestHeaders,
			ExposedHeaders:      answerHeaders,
			MaxAge:              preflightSeconds,
			AllowCredentials:    !all,
			AllowPrivateNetwork: true,
		}).Handler(next)
	}
	if o.believing {
		next = onlyLoopback(next)
	}
	return next, nil
}

// Headers that a page of another origin may send and read.
var (
	requestHeaders = []string{
		"Accept", "Authorization", "Content-Type", "Last-Event-ID", tenantHeader, subjectHeader, "X-Server-Timeout",
		"Connect-Protocol-Version", "Connect-Timeout-Ms", "Connect-Accept-Encoding", "Connect-Content-Encoding", "Content-Encoding",
		"Grpc-Timeout", "Grpc-Encoding", "Grpc-Accept-Encoding", "X-Grpc-Web", "X-User-Agent", previousAttemptsHeader,
	}
	answerHeaders = []string{
		"Content-Encoding", "Connect-Content-Encoding", "Grpc-Encoding", "Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin", "Retry-After",
	}
)

func refuseOrigin(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, http.StatusForbidden, notFrom("Origin", "is not allowed to call this server; add it to --cors-origins"))
}

// onlyLoopback refuses requests whose Host is no name of this machine. A page of somebody else's can give its own name this
// machine's address, and is then of the same origin as far as a browser can tell.
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			refuse(w, r, http.StatusForbidden, notFrom("Host", "is not localhost or an address of loopback, as it has to be with auth none"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost reports a Host that can only mean this machine. None at all is what no browser sends.
func isLoopbackHost(host string) bool {
	if host == "" {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

func notFrom(header, problem string) error {
	r := rule{code: codes.PermissionDenied, reason: turnsv1.ErrorReason_ERROR_REASON_INVALID_FIELD, advice: turns.AdviceDoNotRetry}
	e := &turns.Error{Code: turns.CodeInvalidField, Field: header, Problem: problem}
	return build(r, e, e.Error(), badRequest(e))
}
