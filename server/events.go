package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// retryHint is how long an EventSource waits before it connects again, in milliseconds.
const retryHint = 1000

// serveEvents streams a reply to an EventSource. It passes the gate as a call of FollowReply does, and is one in all but its
// form: a stream of its own takes the place of gRPC's.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		refuseMethod(w, r, http.MethodGet)
		return
	}
	if _, err := s.readBody(w, r); err != nil {
		refuse(w, r, http.StatusBadRequest, errNotWhole)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream := &eventStream{ctx: asCall(ctx, r), w: w, r: r}
	info := &grpc.StreamServerInfo{FullMethod: turnsv1.TurnService_FollowReply_FullMethodName, IsServerStream: true}
	stream.close(s.gate.stream(turnService{Server: s}, stream, info, stream.follow))
}

// asCall gives a request the context that a call of gRPC has: its headers, and from where it comes.
func asCall(ctx context.Context, r *http.Request) context.Context {
	md := metadata.MD{}
	for name, values := range r.Header {
		md.Append(strings.ToLower(name), values...)
	}
	from := &peer.Peer{Addr: remoteAddr(r.RemoteAddr)}
	from.LocalAddr, _ = r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if r.TLS != nil {
		from.AuthInfo = credentials.TLSInfo{State: *r.TLS, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	return peer.NewContext(metadata.NewIncomingContext(ctx, md), from)
}

// remoteAddr is where a request of HTTP comes from.
type remoteAddr string

// Network implements net.Addr.
func (remoteAddr) Network() string { return "tcp" }

// String implements net.Addr.
func (a remoteAddr) String() string { return string(a) }

// eventStream is a stream of server-sent events in the shape of one of gRPC.
type eventStream struct {
	ctx   context.Context
	w     http.ResponseWriter
	r     *http.Request
	begun bool // the header is written
	over  bool // the terminal event is
}

// errNothingMore ends a stream that was over before: its reader knows how it ended.
var errNothingMore = errors.New("the reader has had the terminal event")

// follow is the handler behind the gate.
func (e *eventStream) follow(srv any, ss grpc.ServerStream) error {
	t := srv.(turnService)
	req := &turnsv1.FollowReplyRequest{}
	if err := ss.RecvMsg(req); err != nil {
		return err
	}
	cursor, err := cursorOf(e.r)
	if err != nil {
		return err
	}
	from, err := t.resume(ss.Context(), req, cursor)
	if err != nil {
		return err
	}
	if from.over {
		return e.nothing()
	}
	before := func() error {
		if from.restarted == nil {
			return nil
		}
		restarted := &emitter{send: e.send, reply: from.reply.ID}
		return restarted.write(restartedToWire(*from.restarted), 0)
	}
	return t.Server.follow(ss.Context(), from.key, from.reply.Turn, &from.reply, from.offset, before, e.send, nil)
}

// nothing tells an EventSource to connect no more.
func (e *eventStream) nothing() error {
	e.begun = true
	e.w.Header().Set("Cache-Control", "no-store")
	e.w.WriteHeader(http.StatusNoContent)
	return nil
}

// RecvMsg implements grpc.ServerStream. The request is what the path names.
func (e *eventStream) RecvMsg(m any) error {
	req := &turnsv1.FollowReplyRequest{ConversationId: e.r.PathValue("conversation")}
	if reply := e.r.PathValue("reply"); reply != "" {
		req.Target = &turnsv1.FollowReplyRequest_ReplyId{ReplyId: reply}
	} else {
		req.Target = &turnsv1.FollowReplyRequest_TurnId{TurnId: e.r.PathValue("turn")}
	}
	proto.Merge(m.(proto.Message), req)
	return nil
}

// SendMsg implements grpc.ServerStream.
func (e *eventStream) SendMsg(m any) error {
	return e.send(m.(*turnsv1.FollowReplyResponse).GetEvent())
}

// send writes one event, in one piece and at once.
func (e *eventStream) send(event *turnsv1.Event) error {
	e.begin()
	data, err := jsonForm.Marshal(event)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	kind, terminal := kindOf(event)
	text := make([]byte, 0, len(data)+128)
	text = append(append(text, "event: "...), kind...)
	if id, err := parseID("reply_id", event.GetReplyId()); err == nil {
		at := eventCursor{turns.ReplyID{UUID: id}, event.GetNextOffset(), terminal}
		text = append(append(text, "\nid: "...), at.String()...)
	}
	text = append(append(append(text, "\ndata: "...), data...), "\n\n"...)
	e.over = e.over || terminal
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}

func (e *eventStream) begin() {
	if e.begun {
		return
	}
	e.begun = true
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	_, _ = fmt.Fprintf(e.w, "retry: %d\n\n", retryHint)
}

// close ends the answer: a failure before the first event is a status, and after it there is no more than the end of a stream
// without a terminal event, which an EventSource takes for what it is; a comment says why, to people.
func (e *eventStream) close(err error) {
	switch {
	case err == nil:
	case !e.begun:
		refuse(e.w, e.r, httpCodeOf(err), err)
	case !e.over:
		_, _ = fmt.Fprintf(e.w, ": lost: %s\n\n", reasonOf(err))
	}
}

// reasonOf is the reason of a status in a word.
func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if d, ok := d.(*errdetails.ErrorInfo); ok {
			return d.GetReason()
		}
	}
	return status.Code(err).String()
}

// kindOf is the name of an event's kind, as its field has it, and whether the stream ends with it.
func kindOf(event *turnsv1.Event) (kind string, terminal bool) {
	m := event.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("kind"))
	if field == nil {
		return "unknown", false
	}
	switch event.GetKind().(type) {
	case *turnsv1.Event_Completed, *turnsv1.Event_Abandoned, *turnsv1.Event_Held:
		terminal = true
	}
	return string(field.Name()), terminal
}

// Context implements grpc.ServerStream.
func (e *eventStream) Context() context.Context { return e.ctx }

// SetHeader implements grpc.ServerStream. Nothing here sets any.
func (e *eventStream) SetHeader(metadata.MD) error { return nil }

// SendHeader implements grpc.ServerStream.
func (e *eventStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerStream.
func (e *eventStream) SetTrailer(metadata.MD) {}
