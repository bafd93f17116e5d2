package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// start serves the page in front of a stand-in for turnd.
func start(t *testing.T, turnd http.HandlerFunc) (page, behind *httptest.Server) {
	t.Helper()
	behind = httptest.NewServer(turnd)
	t.Cleanup(behind.Close)
	target, err := url.Parse(behind.URL)
	require.NoError(t, err)
	page = httptest.NewServer(handler(target, "secret"))
	t.Cleanup(page.Close)
	return page, behind
}

func get(t *testing.T, url string, header http.Header) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header = header
	return http.DefaultClient.Do(req)
}

func TestTheProxySaysWhoCallsAndPassesEventsOnAsTheyCome(t *testing.T) {
	read := make(chan struct{})
	page, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("Last-Event-ID")+"\n")
		_ = http.NewResponseController(w).Flush()
		<-read
	})
	resp, err := get(t, page.URL+"/v1/x", http.Header{"Cookie": {"session=1"}, "Last-Event-Id": {"a:1"}})
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	close(read)
	require.NoError(t, err)
	require.Equal(t, "Bearer secreta:1\n", line)
}

func TestWhileTurndIsAwayTheConnectionEndsWithoutAStatus(t *testing.T) {
	page, behind := start(t, nil)
	behind.Close()
	resp, err := get(t, page.URL+"/v1/x", nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.Error(t, err)
}
