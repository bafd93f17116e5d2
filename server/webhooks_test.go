package server_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hookBed is a webhook listener and what it woke.
type hookBed struct {
	http.Handler
	now   time.Time
	fail  error
	mu    sync.Mutex
	woken []string
}

func newHooks() *hookBed {
	b := &hookBed{now: noon}
	b.Handler = b.webhooks().Handler()
	return b
}

func (b *hookBed) webhooks() server.Webhooks {
	return server.Webhooks{
		Secret: func(endpoint string) string { return map[string]string{"gpt": hookSecret, "broken": "?"}[endpoint] },
		Now:    func() time.Time { return b.now },
		Wake: func(ctx context.Context, endpoint, id string) error {
			_, bounded := ctx.Deadline()
			b.mu.Lock()
			defer b.mu.Unlock()
			b.woken = append(b.woken, fmt.Sprint(endpoint, " ", id, " ", bounded))
			return b.fail
		},
	}
}

// message is a signed one.
func message(id string, at time.Time, body string) *http.Request {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	r := httptest.NewRequest(http.MethodPost, "/v1/webhooks/gpt", strings.NewReader(body))
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return r
}

func (b *hookBed) send(r *http.Request) int {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w.Code
}

const completedMessage = `{"id":"evt_1","object":"event","type":"response.completed","data":{"id":"resp_1","output":"never read"}}`

func TestASignedMessageWakesItsResponseOnceHoweverOftenItIsSent(t *testing.T) {
	b := newHooks()
	for range 3 {
		require.Equal(t, http.StatusOK, b.send(message("m1", noon, completedMessage)))
	}
	require.Equal(t, http.StatusOK, b.send(message("m1", noon.Add(time.Minute), completedMessage)))
	require.Equal(t, []string{"gpt resp_1 true"}, b.woken)
	require.Equal(t, http.StatusOK, b.send(message("m2", noon, completedMessage)))
	require.Len(t, b.woken, 2)
}

// unread fails a test in which it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestAMessageThatIsNotTheVendorsIsRefusedAndWakesNobody(t *testing.T) {
	b := newHooks()
	old := message("m", noon.Add(-6*time.Minute), completedMessage)
	old.Body = io.NopCloser(unread{t})
	require.Equal(t, http.StatusUnauthorized, b.send(old))
	future := message("m", noon.Add(6*time.Minute), completedMessage)
	future.Body = io.NopCloser(unread{t})
	require.Equal(t, http.StatusUnauthorized, b.send(future))
	unsigned := message("m", noon, completedMessage)
	unsigned.Header.Del("webhook-signature")
	unsigned.Body = io.NopCloser(unread{t})
	require.Equal(t, http.StatusUnauthorized, b.send(unsigned))
	other := message("m", noon, completedMessage)
	other.Body = io.NopCloser(strings.NewReader(strings.Replace(completedMessage, "resp_1", "resp_2", 1)))
	require.Equal(t, http.StatusUnauthorized, b.send(other))
	moved := message("m", noon, completedMessage)
	moved.Header.Set("webhook-id", "m2")
	require.Equal(t, http.StatusUnauthorized, b.send(moved))
	require.Empty(t, b.woken)
	require.Equal(t, http.StatusOK, b.send(message("m", noon, completedMessage)), "what was refused is not remembered")
}

func TestOnlyKnownEndpointsAndPostsAreServed(t *testing.T) {
	b := newHooks()
	for path, want := range map[string]int{"/v1/webhooks/nobody": http.StatusNotFound, "/v1/webhooks/": http.StatusNotFound, "/": http.StatusNotFound,
		"/v1/webhooks/broken": http.StatusInternalServerError} {
		r := message("m", noon, completedMessage)
		r.URL.Path = path
		r.Body = io.NopCloser(unread{t})
		require.Equal(t, want, b.send(r), path)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead, http.MethodDelete} {
		r := message("m", noon, completedMessage)
		r.Method = method
		require.Equal(t, http.StatusMethodNotAllowed, b.send(r), method)
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, b.send(message("m", noon, strings.Repeat("x", 256<<10+1))))
	require.Empty(t, b.woken)
}

func TestAMessageAboutNothingThatIsKnownIsTakenAndDoesNothing(t *testing.T) {
	b := newHooks()
	for i, body := range []string{"", "{", "[]", `{"data":7}`, `{"data":{"id":7}}`, `{"data":{}}`, `{"data":{"id":"a\nb"}}`, `{"data":{"id":"` + strings.Repeat("x", 257) + `"}}`} {
		require.Equal(t, http.StatusOK, b.send(message(fmt.Sprint(i), noon, body)), body)
	}
	require.Empty(t, b.woken)
}

func TestAMessageThatCouldNotBeActedOnIsSentAgain(t *testing.T) {
	b := newHooks()
	for _, c := range []struct {
		fail error
		want int
	}{
		{turns.Unavailable(errors.New("down")), http.StatusServiceUnavailable},
		{context.DeadlineExceeded, http.StatusServiceUnavailable},
		{&turns.CallError{Class: turns.ClassTransient}, http.StatusServiceUnavailable},
		{&turns.CallError{Class: turns.ClassTerminal}, http.StatusOK},
		{nil, http.StatusOK}, // remembered by now
	} {
		b.fail = c.fail
		require.Equal(t, c.want, b.send(message("m", noon, completedMessage)), "%v", c.fail)
	}
	require.Len(t, b.woken, 4)
	b.fail = fmt.Errorf("ask: %w", turns.ErrNotThere)
	require.Equal(t, http.StatusOK, b.send(message("n", noon, completedMessage)), "another user of the account")
}

func TestTheWebhookListenerEndsWithItsContextAndWaitsForWhatItBegan(t *testing.T) {
	b := newHooks()
	w := b.webhooks()
	begun, ended := make(chan struct{}), make(chan struct{})
	w.Now = nil
	w.Wake = func(ctx context.Context, _, _ string) error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- w.Serve(ctx, lis) }()
	r := message("m", time.Now(), completedMessage)
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", lis.Addr().String(), ""
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	cancel()
	require.NoError(t, <-served)
	select {
	case <-ended:
	default:
		require.Fail(t, "what was begun still runs")
	}
	<-sent
}
