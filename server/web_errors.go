package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/turnd/turnd/turns"
)

// statusOf maps an error that says something of a request, before there is a call.
func statusOf(err error) error {
	return mapper{slog.New(slog.DiscardHandler)}.status(context.Background(), "", err)
}

// httpCodes are those of google.rpc's codes, as its REST has them.
var httpCodes = map[codes.Code]int{
	codes.OK: http.StatusOK, codes.Canceled: 499, codes.InvalidArgument: http.StatusBadRequest,
	codes.DeadlineExceeded: http.StatusGatewayTimeout, codes.NotFound: http.StatusNotFound, codes.AlreadyExists: http.StatusConflict,
	codes.PermissionDenied: http.StatusForbidden, codes.ResourceExhausted: http.StatusTooManyRequests,
	codes.FailedPrecondition: http.StatusBadRequest, codes.Aborted: http.StatusConflict, codes.OutOfRange: http.StatusBadRequest,
	codes.Unimplemented: http.StatusNotImplemented, codes.Unavailable: http.StatusServiceUnavailable,
	codes.Unauthenticated: http.StatusUnauthorized,
}

func httpCodeOf(err error) int {
	if code, ok := httpCodes[status.Code(err)]; ok {
		return code
	}
	return http.StatusInternalServerError
}

// refuse answers a request that came to no call with a status: as Connect writes errors on the path of a method, and else as
// google.rpc.Status, both with all details.
func refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	st := status.Convert(err)
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	hintRetry(w.Header(), st)
	w.WriteHeader(code)
	_, _ = w.Write(errorBody(r, st.Proto()))
}

func errorBody(r *http.Request, st *spb.Status) []byte {
	if isCall(r.URL.Path) {
		return connectError(st)
	}
	body, err := jsonForm.Marshal(st)
	if err != nil {
		return []byte(`{"code":13,"message":"the error can't be written as JSON","details":[]}`)
	}
	return body
}

// hintRetry says in the way of HTTP how long to wait, in whole seconds, rounded up.
func hintRetry(h http.Header, st *status.Status) {
	for _, d := range st.Details() {
		if d, ok := d.(*errdetails.RetryInfo); ok {
			wait := d.GetRetryDelay().AsDuration()
			h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		}
	}
}

// connectDetail is a detail as Connect writes it.
type connectDetail struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

func connectError(st *spb.Status) []byte {
	out := struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Details []connectDetail `json:"details"`
	}{Code: connectCode(codes.Code(st.GetCode())), Message: st.GetMessage()}
	for _, d := range st.GetDetails() {
		out.Details = append(out.Details, connectDetail{string(d.MessageName()), base64.RawStdEncoding.EncodeToString(d.GetValue())})
	}
	body, _ := json.Marshal(out) // strings alone
	return body
}

// connectCode is a code's name as Connect spells it: "invalid_argument".
func connectCode(c codes.Code) string {
	var out strings.Builder
	for i, r := range strings.Replace(c.String(), "OK", "ok", 1) {
		if i > 0 && r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
		}
		out.WriteString(strings.ToLower(string(r)))
	}
	return out.String()
}

// noSuchPath answers for a path that nothing is served at.
func (s *Server) noSuchPath(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, http.StatusNotFound, statusOf(&turns.Error{Code: turns.CodeUnimplemented,
		Problem: "this server has no such method; GET /openapi.json lists the paths"}))
}

// typedErrors gives those errors a reason and advice that the transcoder makes by itself, such as for a query parameter that
// is no number: it writes them as plain text, or without details.
func typedErrors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path // which the transcoder changes
		t := &typedWriter{ResponseWriter: w}
		next.ServeHTTP(t, r)
		if t.code == 0 {
			return
		}
		back := *r
		at := *r.URL
		at.Path, back.URL = path, &at
		t.finish(&back)
	})
}

// typedWriter holds back answers that are errors. Those are short, and are written at once when the call has ended.
type typedWriter struct {
	http.ResponseWriter
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

func (t *typedWriter) finish(r *http.Request) {
	var found untyped
	isJSON := json.Unmarshal(t.body.Bytes(), &found) == nil
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
	t.Header().Del("X-Content-Type-Options")
	refuse(t.ResponseWriter, r, t.code, untypedStatus(t.code, text))
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
