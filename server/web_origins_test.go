package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns/access"
)

const (
	friend  = "https://chat.example.com"
	hostile = "https://evil.example"
)

func allowing(origins ...string) func(*server.Config) {
	return func(c *server.Config) { c.CORSOrigins = origins }
}

var turnBody = `{"turnId":"` + turnID.String() + `","content":[{"text":{"text":"hello"}}]}`

func TestAHostilePageCanChangeNothing(t *testing.T) {
	f := newFake()
	h := start(t, f, allowing(friend))
	for name, header := range map[string][]string{
		"what fetch says":        {"Origin", hostile, "Sec-Fetch-Site", "cross-site"},
		"an old browser":         {"Origin", hostile},
		"a form":                 {"Origin", hostile, "Content-Type", "text/plain"},
		"a sandboxed frame":      {"Origin", "null", "Sec-Fetch-Site", "cross-site"},
		"another port":           {"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"},
		"a name that looks like": {"Origin", friend + ".evil.example", "Sec-Fetch-Site", "cross-site"},
	} {
		for _, path := range []string{"/v1/turns", "/turns.v1.TurnService/SubmitTurn"} {
			resp, body := exchange(t, h, http.MethodPost, path, turnBody, header...)
			require.Equal(t, http.StatusForbidden, resp.StatusCode, "%s %s", name, body)
			require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
			if path == "/v1/turns" {
				require.Equal(t, "INVALID_FIELD", info(t, restError(t, body), codes.PermissionDenied).GetReason())
			}
		}
	}
	require.Zero(t, f.submissions())
}

func TestAHostilePageCanReadNothing(t *testing.T) {
	h := start(t, newFake(story()...), allowing(friend))
	resp := source(t, h, replyEvents, "Origin", hostile, "Sec-Fetch-Site", "cross-site")
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
	preflight, _ := exchange(t, h, http.MethodOptions, "/v1/turns", "", "Origin", hostile, "Access-Control-Request-Method", "POST")
	require.Empty(t, preflight.Header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, preflight.Header.Get("Access-Control-Allow-Methods"))
}

func TestAllowedPagesPagesOfItsOwnAndProgramsMayCall(t *testing.T) {
	f := newFake(story()...)
	h := start(t, f, allowing(friend))
	for name, header := range map[string][]string{
		"an allowed page":     {"Origin", friend, "Sec-Fetch-Site", "cross-site"},
		"the console":         {"Origin", "http://" + h.Addr, "Sec-Fetch-Site", "same-origin"},
		"an old browser's":    {"Origin", "http://" + h.Addr},
		"a program":           nil,
		"typed by its person": {"Sec-Fetch-Site", "none"},
	} {
		resp, body := exchange(t, h, http.MethodPost, "/v1/turns", turnBody, header...)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s %s", name, body)
	}
	preflight, _ := exchange(t, h, http.MethodOptions, "/v1/turns", "", "Origin", friend, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,connect-protocol-version,content-type")
	require.Equal(t, friend, preflight.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "true", preflight.Header.Get("Access-Control-Allow-Credentials"))
	require.Contains(t, strings.ToLower(preflight.Header.Get("Access-Control-Allow-Headers")), "authorization")
	resp := source(t, h, replyEvents, "Origin", friend)
	require.Equal(t, friend, resp.Header.Get("Access-Control-Allow-Origin"))
}

func TestAllOriginsGetNoCredentials(t *testing.T) {
	d := &doorman{}
	d.let("key", access.ScopeTurns)
	h := start(t, newFake(), d.guard, allowing("*"))
	resp, body := exchange(t, h, http.MethodPost, "/v1/turns", turnBody, "Origin", hostile, "Sec-Fetch-Site", "cross-site",
		"Authorization", "Bearer key")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.Equal(t, "*", resp.Header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Credentials"))
}

func TestOriginsAreWrittenAsBrowsersWriteThem(t *testing.T) {
	for _, bad := range []string{"", "chat.example.com", "https://chat.example.com/", "https://Chat.example.com", "ftp://a", "null", "https://*.example.com/x", "https://u@a",
		"http://*", "https://*.example.com", "https://a:", "https://a:443", "http://a:80"} {
		require.Error(t, server.CheckOrigins("none", []string{bad}), bad)
		require.Error(t, server.CheckOrigins("keys", []string{bad}), bad)
	}
	require.ErrorContains(t, server.CheckOrigins("none", []string{"*"}), "auth none")
	require.ErrorContains(t, server.CheckOrigins("keys", []string{"*", friend}), "leave out")
	require.NoError(t, server.CheckOrigins("keys", []string{"*"}))
	require.NoError(t, server.CheckOrigins("none", []string{friend, "http://localhost:5173", "http://[::1]:1", "http://a:443"}))
	f := newFake()
	_, err := server.New(server.Config{Service: f, Follower: f, CORSOrigins: []string{"*"}})
	require.Error(t, err)
}

func TestANameThatWasGivenTheAddressOfLoopbackIsRefused(t *testing.T) {
	f := newFake(story()...)
	h := start(t, f)
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.168.1.1", "localhost.evil.example"} {
		for _, path := range []string{"/v1/turns", "/", "/openapi.json"} {
			resp, _ := exchange(t, h, http.MethodPost, path, turnBody, "Host", host)
			require.Equal(t, http.StatusForbidden, resp.StatusCode, host)
		}
	}
	require.Zero(t, f.submissions())
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1", "127.8.8.8:1", "[::1]", "[::1]:8080"} {
		resp, body := exchange(t, h, http.MethodPost, "/v1/turns", turnBody, "Host", host)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s %s", host, body)
	}
}

func TestWithKeysTheNameOfTheServerIsItsOwnMatter(t *testing.T) {
	d := &doorman{}
	d.let("key", access.ScopeTurns)
	h := start(t, newFake(), d.guard)
	resp, body := exchange(t, h, http.MethodPost, "/v1/turns", turnBody, "Host", "turnd.example.com", "Authorization", "Bearer key")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
}

func TestTheConsoleShadowsNoCall(t *testing.T) {
	console := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "console "+r.URL.Path) })
	h := start(t, newFake(story()...), func(c *server.Config) { c.Console = console })
	for _, path := range []string{"/", "/assets/app.js", "/c/some-id", "/v2"} {
		_, body := exchange(t, h, http.MethodGet, path, "")
		require.Equal(t, "console "+path, body)
	}
	for _, path := range []string{"/v1/", "/v1/x", "/turns.v1.TurnService/Nothing", "/turns.v1.Nothing/X", "/grpc.health.v1.Health/Nothing", "/openapi.json", replyEvents} {
		_, body := exchange(t, h, http.MethodGet, path, "")
		require.NotContains(t, body, "console", path)
	}
}
