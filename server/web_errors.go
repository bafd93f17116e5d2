package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

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

// refuse answers a request that came to no call with a status, as it would have been answered by the call.
func refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	formOf(r).refuse(w, code, err)
}

// refuseMethod answers a request whose path is for other methods of HTTP.
func refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	refuse(w, r, http.StatusMethodNotAllowed, statusOf(&turns.Error{Code: turns.CodeUnimplemented, Problem: "this path is for " + allowed}))
}

// errorForm is how errors are written to a client, with all details in each form.
type errorForm struct {
	call bool   // on the path of a method; else it is REST's google.rpc.Status
	kind string // the Content-Type of the request, without parameters
}

func formOf(r *http.Request) errorForm {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return errorForm{isCall(r.URL.Path), strings.TrimSpace(kind)}
}

// refuse writes a status. A client of a stream reads an error at the end of an answer that is OK by HTTP, and nothing in an
// answer that is not.
func (f errorForm) refuse(w http.ResponseWriter, code int, err error) {
	st := status.Convert(err)
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	hintRetry(h, st)
	kind, body := "application/json", []byte(nil)
	switch {
	case !f.call:
		body = restError(st.Proto())
	case f.kind == connectStream+"proto", f.kind == connectStream+"json":
		code, kind, body = http.StatusOK, f.kind, connectEnd(st.Proto())
	case f.kind == grpcWeb, f.kind == grpcWeb+"+proto", f.kind == grpcWeb+"+json":
		code, kind = http.StatusOK, f.kind
		putTrailers(h, st)
	default:
		body = connectError(st.Proto())
	}
	h.Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// Kinds of requests whose messages have a length before them.
const (
	connectStream = "application/connect+"
	grpcWeb       = "application/grpc-web"
)

func restError(st *spb.Status) []byte {
	body, err := jsonForm.Marshal(st)
	if err != nil {
		return []byte(`{"code":13,"message":"the error can't be written as JSON","details":[]}`)
	}
	return body
}

// endOfStream marks the message with which a stream of Connect ends.
const endOfStream = 2

// connectEnd is a stream of Connect that is nothing but an error.
func connectEnd(st *spb.Status) []byte {
	body := append(append([]byte(`{"error":`), connectError(st)...), '}')
	return append(binary.BigEndian.AppendUint32([]byte{endOfStream}, uint32(len(body))), body...)
}

// putTrailers makes an answer of gRPC-Web that is nothing but its end.
func putTrailers(h http.Header, st *status.Status) {
	h.Set("Grpc-Status", strconv.Itoa(int(st.Code())))
	h.Set("Grpc-Message", strings.ReplaceAll(url.QueryEscape(st.Message()), "+", "%20"))
	if details, err := proto.Marshal(st.Proto()); err == nil {
		h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(details))
	}
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
