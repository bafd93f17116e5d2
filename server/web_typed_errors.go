package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/turnd/turnd/turns"
)

// typedErrors gives those errors a reason and advice that the transcoder makes by itself, such as for a query parameter that
// is no number: it writes them as plain text, or without details.
func typedErrors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &typedWriter{ResponseWriter: w, form: formOf(r)} // before the transcoder changes the request
		next.ServeHTTP(t, r)
		if t.code != 0 {
			t.finish()
		}
	})
}

// typedWriter holds back answers that are errors. Those are short, and are written at once when the call has ended.
type typedWriter struct {
	http.ResponseWriter
	form errorForm
	code int // of an error, else 0
	body bytes.Buffer
}

// Unwrap lets http.ResponseController find what is wrapped.
func (t *typedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (t *typedWriter) WriteHeader(code int) {
	if code < http.StatusBadRequest {
		t.ResponseWriter.WriteHeader(code)
		return
	}
	t.code = code
}

// Write implements http.ResponseWriter.
func (t *typedWriter) Write(p []byte) (int, error) {
	if t.code != 0 {
		return t.body.Write(p)
	}
	return t.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (t *typedWriter) Flush() {
	if t.code == 0 {
		_ = http.NewResponseController(t.ResponseWriter).Flush()
	}
}

// untyped is the part of an error's body that both forms have.
type untyped struct {
	Code    any               `json:"code"`
	Message string            `json:"message"`
	Details []json.RawMessage `json:"details"`
}

func (t *typedWriter) finish() {
	var found untyped
	isJSON := json.Unmarshal(t.body.Bytes(), &found) == nil
	for _, name := range []string{"Grpc-Status", "Grpc-Message"} { // of the call behind it
		t.Header().Del(name)
	}
	if isJSON && len(found.Details) > 0 {
		var st spb.Status
		if protojson.Unmarshal(t.body.Bytes(), &st) == nil { // else it is an error of Connect's
			hintRetry(t.Header(), status.FromProto(&st))
		}
		t.ResponseWriter.WriteHeader(t.code)
		_, _ = t.ResponseWriter.Write(t.body.Bytes())
		return
	}
	text := strings.TrimSpace(t.body.String())
	if isJSON {
		text = found.Message
	}
	if found.Code == float64(codes.Unknown) || found.Code == connectCode(codes.Unknown) {
		t.code = http.StatusBadRequest // the request could not be made one of gRPC
	}
	t.Header().Del("Content-Encoding")
	if strings.Contains(text, errTooLargeUnpacked.Error()) {
		t.code = http.StatusRequestEntityTooLarge
	}
	t.form.refuse(t.ResponseWriter, t.code, untypedStatus(t.code, text))
}

// untypedStatus makes a status of an error that has no more than a code of HTTP and a text.
func untypedStatus(code int, text string) error {
	switch code {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return statusOf(&turns.Error{Code: turns.CodeUnimplemented, Problem: strings.ToLower(text)})
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return fromLibrary(status.New(codes.ResourceExhausted, text))
	case http.StatusInternalServerError:
		return fromLibrary(status.New(codes.Internal, text))
	}
	return statusOf(invalidField("request", text))
}
