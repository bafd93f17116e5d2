package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server"
)

func ask(o server.Ops, path string) (int, string) {
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestReadinessNamesWhatIsMissingAndKeepsTheCauseForTheLog(t *testing.T) {
	var log bytes.Buffer
	fine := server.Check{Name: "serving", Ready: func(context.Context) error { return nil }}
	down := server.Check{Name: "database", Ready: func(context.Context) error { return errors.New("password=hunter2") }}
	code, body := ask(server.Ops{Checks: []server.Check{fine}}, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "serving: ok\n", body)
	code, body = ask(server.Ops{Checks: []server.Check{down, fine}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "database: not ready\nserving: ok\n", body)
	require.Contains(t, log.String(), "hunter2")
}

func TestTheOpsListenerHasMetricsHealthAndProfiles(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "turnd_in_flight 0\n") })
	for path, want := range map[string]string{"/metrics": "turnd_in_flight", "/healthz": "ok", "/debug/pprof/": "goroutine", "/debug/pprof/symbol": "num_symbols"} {
		code, body := ask(server.Ops{Metrics: metrics}, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Contains(t, body, want)
	}
	code, _ := ask(server.Ops{}, "/metrics")
	require.Equal(t, http.StatusNotFound, code)
}

func TestTheOpsListenerServesUntilItsContextEnds(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Ops{}.Serve(ctx, lis) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + lis.Addr().String() + "/healthz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	cancel()
	require.NoError(t, <-ended)
}

func TestAnOpsListenerThatFailsSaysSo(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, lis.Close())
	require.ErrorIs(t, server.Ops{}.Serve(t.Context(), lis), net.ErrClosed)
}
