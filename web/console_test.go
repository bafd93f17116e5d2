package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask sends a request to the console as it is built in.
func ask(t *testing.T, method, path string, headers map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	Console().ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return string(body)
}

func TestEveryAddressOfTheConsoleIsAnsweredWithItsPage(t *testing.T) {
	for _, path := range []string{
		"/", "/?x=1", "/c/0d7a6a6e-58a5-4d2c-a5c5-0d1a64d0a001", "/c/x?at=y", "/identity",
		"/operator/held", "/operator/ledger?conversation=x", "/operator/retries", "/operator/workers",
	} {
		response := ask(t, http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Equal(t, "text/html; charset=utf-8", response.Header.Get("Content-Type"))
		require.Equal(t, "no-cache", response.Header.Get("Cache-Control"))
		require.Contains(t, read(t, response), `<div id="console">`)
	}
}

func TestOtherAddressesAreNeverAnsweredWithThePage(t *testing.T) {
	for _, path := range []string{
		"/v1/conversations", "/v1/nothing", "/turns.v1.TurnService/Turn", "/turns.v1.Nothing/X", "/grpc.health.v1.Health/Check",
		"/index.html", "/c/", "/c/x/y", "/operator/", "/operator/nothing", "/operator/held/x", "/identity/", "/assets/", "/assets/gone.js",
		"/assets/..%2findex.html", "/c/../v1/x", "//", "/healthz", "/favicon.ico",
	} {
		response := ask(t, http.MethodGet, path, nil)
		require.Equal(t, http.StatusNotFound, response.StatusCode, path)
		require.NotContains(t, read(t, response), "<div", path)
	}
}

func TestThePageMayRunNothingButItsOwnFiles(t *testing.T) {
	for _, path := range []string{"/", "/favicon.svg", "/nothing"} {
		h := ask(t, http.MethodGet, path, nil).Header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			require.Contains(t, csp, part, path)
		}
		require.NotContains(t, csp, "unsafe", path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		require.Equal(t, "DENY", h.Get("X-Frame-Options"))
	}
	page := read(t, ask(t, http.MethodGet, "/", nil))
	require.NotRegexp(t, `<script(?:>|[^>]*[^/]>[^<])`, regexp.MustCompile(`<script[^>]* src="[^"]+"></script>`).ReplaceAllString(page, ""), "a script in the page")
	require.NotContains(t, page, "<style")
	require.NotContains(t, page, "http://")
	require.NotContains(t, page, "https://")
}

func TestFilesNamedByTheirContentAreKeptForEver(t *testing.T) {
	names := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(read(t, ask(t, http.MethodGet, "/", nil)), -1)
	require.Len(t, names, 2, "a script and a style")
	for _, name := range names {
		response := ask(t, http.MethodGet, name[1], map[string]string{"Accept-Encoding": "br, gzip"})
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, "public, max-age=31536000, immutable", response.Header.Get("Cache-Control"))
		require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
		require.Equal(t, "Accept-Encoding", response.Header.Get("Vary"))
		zipped, err := gzip.NewReader(response.Body)
		require.NoError(t, err)
		unzipped, err := io.ReadAll(zipped)
		require.NoError(t, err)

		plain := ask(t, http.MethodGet, name[1], map[string]string{"Accept-Encoding": "gzip;q=0, identity"})
		require.Empty(t, plain.Header.Get("Content-Encoding"))
		require.Equal(t, read(t, plain), string(unzipped))
	}
}

func TestAPageThatDidNotChangeIsNotSentAgain(t *testing.T) {
	tag := ask(t, http.MethodGet, "/", nil).Header.Get("ETag")
	require.NotEmpty(t, tag)
	for _, seen := range []string{tag, "W/" + tag, `"other", ` + tag} {
		response := ask(t, http.MethodGet, "/c/x", map[string]string{"If-None-Match": seen})
		require.Equal(t, http.StatusNotModified, response.StatusCode)
		require.Empty(t, read(t, response))
	}
	require.Equal(t, http.StatusOK, ask(t, http.MethodGet, "/", map[string]string{"If-None-Match": `"other"`}).StatusCode)
}

func TestTheConsoleIsReadOnly(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		response := ask(t, method, "/", nil)
		require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
		require.Equal(t, "GET, HEAD", response.Header.Get("Allow"))
	}
	head := ask(t, http.MethodHead, "/", nil)
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.NotEqual(t, "0", head.Header.Get("Content-Length"))
	require.Empty(t, read(t, head))
}

func TestTheLicencesOfWhatIsBuiltInComeAlong(t *testing.T) {
	response := ask(t, http.MethodGet, "/licenses.md", nil)
	require.Equal(t, "text/plain; charset=utf-8", response.Header.Get("Content-Type"))
	body := read(t, response)
	for _, name := range []string{"react-dom", "@bufbuild/protobuf", "@connectrpc/connect"} {
		require.True(t, strings.Contains(body, name), name)
	}
}
