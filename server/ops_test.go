package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server"
)

func ask(o server.Ops, path string) (int, string) { return askHandler(o.Handler(), path) }

func askHandler(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestReadinessNamesWhatIsMissingAndKeepsTheCauseForTheLog(t *testing.T) {
	var log bytes.Buffer
	fine := server.Check{Name: "serving", Ready: func(context.Context) error { return nil }}
	down := server.Check{Name: "database", Ready: func(context.Context) error { return errors.New("password=hunter2") }}
	code, body := ask(server.Ops{Readiness: server.NewReadiness(nil, fine)}, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "serving: ok\n", body)
	o := server.Ops{Readiness: server.NewReadiness(slog.New(slog.NewTextHandler(&log, nil)), down, fine), About: map[string]string{"version": "v1"}}
	code, body = ask(o, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "database: not ready\nserving: ok\n", body)
	code, body = ask(o, "/readyz?verbose")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.NotContains(t, body, "hunter2")
	var verbose struct {
		Ready  bool
		Checks []struct {
			Name         string
			Ready        bool
			Since, Asked time.Time
		}
		About map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(body), &verbose))
	require.False(t, verbose.Ready)
	require.Equal(t, "database", verbose.Checks[0].Name)
	require.False(t, verbose.Checks[0].Ready)
	require.True(t, verbose.Checks[1].Ready)
	require.WithinDuration(t, time.Now(), verbose.Checks[0].Since, time.Minute)
	require.Equal(t, "v1", verbose.About["version"])
	require.Equal(t, 1, strings.Count(log.String(), "hunter2"), "it is logged once, and not with each probe")
}

func TestAProcessThatStandsStillIsNotAliveAndSaysWhy(t *testing.T) {
	o := server.Ops{Alive: func() error { return errors.New("the loop of checkpoints has not come round for 5m0s") }}
	code, body := ask(o, "/healthz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "the loop of checkpoints has not come round for 5m0s\n", body)
	_, body = ask(o, "/healthz?verbose")
	require.Contains(t, body, `"alive":false`)
	code, body = ask(server.Ops{}, "/healthz?verbose")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, `{"alive":true,"about":{}}`+"\n", body)
}

func TestTheOpsListenerHasMetricsHealthAndProfiles(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "turnd_in_flight 0\n") })
	for path, want := range map[string]string{"/metrics": "turnd_in_flight", "/healthz": "ok", "/debug/pprof/": "goroutine", "/debug/pprof/symbol": "num_symbols", "/readyz": "", "/version": "{}"} {
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
