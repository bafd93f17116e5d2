package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
)

// Bounds of a read of the issuer's keys.
const (
	maxBody      = 1 << 20
	maxHeader    = 64 << 10
	maxRedirects = 3
	// readTimeout is for discovery and keys together.
	readTimeout = 5 * time.Second
)

// source is where the issuer's keys come from.
type source struct {
	client  *http.Client
	issuer  string
	jwksURL string // empty for where discovery says
}

func newSource(cfg Config) source {
	transport := cfg.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxResponseHeaderBytes = maxHeader
		own.MaxIdleConnsPerHost = 1
		transport = own
	}
	return source{issuer: cfg.Issuer, jwksURL: cfg.JWKSURL, client: &http.Client{Transport: transport, CheckRedirect: sameHost}}
}

// sameHost keeps to the host that the operator or discovery named: a redirect must not choose whose keys are good.
func sameHost(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return errors.New("a redirect to another host or scheme is not followed")
	}
	return nil
}

// read reads the keys as they are now. Discovery is asked each time, since an issuer may move its keys.
func (s source) read(ctx context.Context) ([]key, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	where := s.jwksURL
	if where == "" {
		var err error
		if where, err = s.discover(ctx); err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
	}
	body, err := s.get(ctx, where)
	if err != nil {
		return nil, err
	}
	return readKeys(body)
}

// discover asks the issuer where its keys are. A document of another issuer is not believed.
func (s source) discover(ctx context.Context) (string, error) {
	body, err := s.get(ctx, strings.TrimSuffix(s.issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return "", err
	}
	var document struct {
		Issuer  string `json:"issuer"`
		JWKSURL string `json:"jwks_uri"`
	}
	if json.Unmarshal(body, &document) != nil {
		return "", errors.New("the document is not JSON, or only a part of it")
	}
	if document.Issuer != s.issuer {
		return "", errors.New("the document is of another issuer; set the issuer as it says, letter by letter")
	}
	if _, err := checkURL(document.JWKSURL); err != nil {
		return "", fmt.Errorf("its jwks_uri %w", err)
	}
	return document.JWKSURL, nil
}

// get reads a document. Its content type is not looked at: issuers on plain file hosts give any, and what counts is in the body.
func (s source) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, application/jwk-set+json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered with status %d", url, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("%s answered with more than %d bytes", url, maxBody)
	}
	return body, nil
}
