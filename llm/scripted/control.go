package scripted

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	controlPrefix = "/_scripted/"
	// A wait lasts defaultWait unless it names a timeout, of maxWait at most.
	defaultWait = 30 * time.Second
	maxWait     = 10 * time.Minute
	maxGateName = 200
)

// controlHandler serves what scripts, watches and drives the provider over HTTP.
func (s *Server) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+controlPrefix+"script", s.putScript)
	mux.HandleFunc("POST "+controlPrefix+"reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		respond(w, http.StatusOK, struct{}{})
	})
	mux.HandleFunc("GET "+controlPrefix+"calls", s.getCalls)
	mux.HandleFunc("GET "+controlPrefix+"counts", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, s.Counts())
	})
	mux.HandleFunc("GET "+controlPrefix+"wait", s.getWait)
	mux.HandleFunc("POST "+controlPrefix+"gates/{name}/open", s.postGate)
	return mux
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(encode(body), '\n'))
}

// complain answers 400 and names the field where one is at fault.
func complain(w http.ResponseWriter, err error) {
	var problem struct {
		Error struct {
			Field   string `json:"field,omitempty"`
			Message string `json:"message"`
		} `json:"error"`
	}
	problem.Error.Message = err.Error()
	if bad := (*FieldError)(nil); errors.As(err, &bad) {
		problem.Error.Field = bad.Field
	}
	respond(w, http.StatusBadRequest, problem)
}

// putScript replaces the script only when all of it can be used.
func (s *Server) putScript(w http.ResponseWriter, r *http.Request) {
	script, err := ParseScript(r.Body)
	if err == nil {
		err = s.SetScript(script)
	}
	if err != nil {
		complain(w, err)
		return
	}
	respond(w, http.StatusOK, struct {
		Rules int `json:"rules"`
	}{len(script.Rules)})
}

func (s *Server) getCalls(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	after, key := q.number("after"), q.text("key")
	if err := q.end(); err != nil {
		complain(w, err)
		return
	}
	respond(w, http.StatusOK, s.CallsAfter(after, key))
}

func (s *Server) postGate(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if len(name) > maxGateName {
		complain(w, &FieldError{"gate", fmt.Sprintf("longer than %d bytes", maxGateName)})
		return
	}
	if err := s.OpenGate(name); err != nil {
		complain(w, err)
		return
	}
	respond(w, http.StatusOK, struct{}{})
}

// getWait answers 200 when the condition is true and 408 when its time is over.
func (s *Server) getWait(w http.ResponseWriter, r *http.Request) {
	wait, timeout, err := s.parseWait(r.URL.Query())
	if err != nil {
		complain(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	status := http.StatusOK
	if wait(ctx) != nil {
		status = http.StatusRequestTimeout
	}
	respond(w, status, struct {
		Done bool `json:"done"`
	}{status == http.StatusOK})
}

// parseWait turns the parameters into one of the Wait methods.
func (s *Server) parseWait(values url.Values) (func(context.Context) error, time.Duration, error) {
	q := query{values: values}
	timeout := q.duration("timeout", defaultWait)
	var wait func(context.Context) error
	switch {
	case values.Has("requests"):
		n := q.number("requests")
		wait = func(ctx context.Context) error { return s.WaitRequests(ctx, n) }
	case values.Has("finished"):
		n := q.number("finished")
		wait = func(ctx context.Context) error { return s.WaitFinished(ctx, n) }
	case values.Has("gate"):
		gate, n := q.text("gate"), q.number("arrived")
		wait = func(ctx context.Context) error { return s.WaitGate(ctx, gate, n) }
	case values.Has("call"):
		call, n := q.number("call"), q.number("deltas")
		wait = func(ctx context.Context) error { return s.WaitDeltas(ctx, call, n) }
	default:
		q.fail("query", "needs requests, finished, gate and arrived, or call and deltas")
	}
	return wait, timeout, q.end()
}

// query reads parameters and keeps the first problem.
type query struct {
	values url.Values
	read   []string
	err    error
}

func (q *query) fail(field, problem string) {
	if q.err == nil {
		q.err = &FieldError{field, problem}
	}
}

func (q *query) text(name string) string {
	q.read = append(q.read, name)
	return q.values.Get(name)
}

// number is 0 when the parameter is absent.
func (q *query) number(name string) int {
	text := q.text(name)
	if text == "" && !q.values.Has(name) {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		q.fail(name, "must be a number from 0")
	}
	return n
}

func (q *query) duration(name string, otherwise time.Duration) time.Duration {
	text := q.text(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		q.fail(name, "must be a duration of at most "+maxWait.String())
	}
	return d
}

// end returns the first problem; a parameter that nobody read is one.
func (q *query) end() error {
	for name := range q.values {
		if !slices.Contains(q.read, name) {
			q.fail(name, "does not belong here")
		}
	}
	return q.err
}
