package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnd/turnd/server/webhook"
	"github.com/turnd/turnd/turns"
)

const (
	// wakeTime bounds what a message may set off.
	wakeTime = 10 * time.Second
	// hookPlaces bounds the messages that are read or acted on at once.
	hookPlaces = 64
	// hookHeaderTime bounds reading a message's headers, and hookEnd what is left for messages under way at the end.
	hookHeaderTime = 5 * time.Second
	hookEnd        = 2 * time.Second
	// complaintEvery is how often messages that were refused are spoken of: anybody can send them.
	complaintEvery = time.Minute
	// maxResponseID bounds the vendor's id of a response, in bytes.
	maxResponseID = 256
)

// Webhooks takes messages by which vendors say that a response is over: POST /v1/webhooks/{endpoint}. Each is authenticated
// by its signature, so the listener may be reached from everywhere; it speaks plain HTTP and wants a proxy with TLS before it.
// All that a message is good for is the id of the response: the answer itself is asked for at the vendor.
type Webhooks struct {
	// Secret is that of an endpoint by its name in the models file; empty if it takes no messages.
	Secret func(endpoint string) string
	// Wake looks for whoever waits for a response; that nobody does is no error.
	Wake func(ctx context.Context, endpoint, responseID string) error
	// Logger gets why messages were refused. Default: nothing is logged.
	Logger *slog.Logger
	// Now is the present. Default: time.Now.
	Now func() time.Time
}

// hooks are Webhooks at work.
type hooks struct {
	Webhooks
	seen       webhook.Memory
	places     chan struct{}
	complained atomic.Int64 // when, in Unix nanoseconds
	running    sync.WaitGroup
}

func (w Webhooks) start() *hooks {
	if w.Logger == nil {
		w.Logger = slog.New(slog.DiscardHandler)
	}
	if w.Now == nil {
		w.Now = time.Now
	}
	return &hooks{Webhooks: w, places: make(chan struct{}, hookPlaces)}
}

// Handler answers messages. It remembers those that it took.
func (w Webhooks) Handler() http.Handler { return w.start().handler() }

func (h *hooks) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/webhooks/{endpoint}", h.serve)
	return mux
}

// Serve serves on a listener, which it closes, until ctx ends, and waits for messages under way.
func (w Webhooks) Serve(ctx context.Context, lis net.Listener) error {
	h := w.start()
	srv := boundedHTTP(h.handler(), hookHeaderTime, h.Logger)
	srv.ReadTimeout, srv.WriteTimeout = 2*hookHeaderTime, 2*hookHeaderTime+wakeTime
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	srv.BaseContext = func(net.Listener) context.Context { return life }
	err := serveUntil(ctx, srv, lis, hookEnd, "webhooks")
	end() // what was cut off must not outlive this
	h.running.Wait()
	return err
}

// serve takes one message and answers it.
func (h *hooks) serve(w http.ResponseWriter, r *http.Request) {
	h.running.Add(1)
	defer h.running.Done()
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		sendAgain(w)
		return
	}
	switch status := h.take(w, r); status {
	case http.StatusServiceUnavailable:
		sendAgain(w)
	case http.StatusOK:
		w.WriteHeader(status)
	default:
		http.Error(w, http.StatusText(status), status)
	}
}

// sendAgain has the vendor send a message again later.
func sendAgain(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// take verifies a message and acts on it. What fails is not read further.
func (h *hooks) take(w http.ResponseWriter, r *http.Request) (status int) {
	endpoint := r.PathValue("endpoint")
	secret := h.Secret(endpoint)
	if secret == "" {
		return http.StatusNotFound
	}
	key, err := webhook.ParseKey(secret)
	if err != nil {
		h.complain(endpoint, err)
		return http.StatusInternalServerError
	}
	now := h.Now()
	head, err := webhook.ReadHead(r.Header, now)
	if err != nil {
		h.complain(endpoint, err)
		return http.StatusUnauthorized
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	if err != nil {
		return http.StatusBadRequest
	}
	if err := head.Verify(key, body); err != nil {
		h.complain(endpoint, err)
		return http.StatusUnauthorized
	}
	id := endpoint + "\x00" + head.ID
	if !h.seen.Take(id, now) {
		return http.StatusOK
	}
	if err := h.wake(r.Context(), endpoint, responseOf(body)); err != nil {
		h.seen.Forget(id)
		h.Logger.WarnContext(r.Context(), "vendor's message not acted on, to be sent again", "endpoint", endpoint, "err", err)
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// responseOf is the vendor's id of the response that a message is about; empty if it is about something else. Nothing else
// of a message is read.
func responseOf(body []byte) string {
	var message struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil || len(message.Data.ID) > maxResponseID || !visible(message.Data.ID) {
		return ""
	}
	return message.Data.ID
}

// wake acts on a message. An error says that sending it again may help.
func (h *hooks) wake(ctx context.Context, endpoint, responseID string) error {
	if responseID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	err := h.Wake(ctx, endpoint, responseID)
	var asked *turns.CallError
	switch {
	case errors.Is(err, turns.ErrNotThere):
		return nil // of somebody else who uses the same account
	case errors.As(err, &asked) && (asked.Class == turns.ClassTerminal || asked.Class == turns.ClassAlreadyDone):
		h.Logger.WarnContext(ctx, "vendor's message about a response that can't be asked for", "endpoint", endpoint, "err", err)
		return nil
	}
	return err
}

// complain says why a message was refused, once in a while.
func (h *hooks) complain(endpoint string, err error) {
	now, last := h.Now(), h.complained.Load()
	if now.Sub(time.Unix(0, last)) < complaintEvery || !h.complained.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	h.Logger.Warn("message to a webhook refused", "endpoint", endpoint, "err", err)
}
