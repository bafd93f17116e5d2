package casetest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/rest"
)

// restConn is a client's connection by the paths of REST, and by event streams where they are those of a stream. What a method
// is called by is read from the wire.
type restConn struct {
	http *http.Client
	base string
}

func (w *worker) onREST() *restConn {
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &restConn{&http.Client{Transport: transport}, "http://" + w.harness.Addr}
}

var pathField = regexp.MustCompile(`\{([^}]+)\}`)

// bindings are the ways to call a method.
func bindings(method string) []rest.Binding {
	return rest.Methods()[protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))]
}

// request makes a request by the first binding whose path the message fills.
func (c *restConn) request(ctx context.Context, method string, m proto.Message) (*http.Request, error) {
	for _, b := range bindings(method) {
		query, whole := url.Values{}, true
		used := map[string]bool{}
		flat := flatten(m.ProtoReflect(), "")
		path := pathField.ReplaceAllStringFunc(b.Path, func(field string) string {
			name := strings.Trim(field, "{}")
			whole = whole && flat[name] != ""
			used[name] = true
			return url.PathEscape(flat[name])
		})
		if !whole {
			continue
		}
		var body []byte
		switch of := m.ProtoReflect(); b.Body {
		case "":
		case "*":
			body = marshal(m)
		default:
			field := of.Descriptor().Fields().ByName(protoreflect.Name(b.Body))
			body = marshal(of.Get(field).Message().Interface())
		}
		for name, value := range flat {
			if !used[name] && b.Body != "*" && (b.Body == "" || !strings.HasPrefix(name, b.Body+".")) {
				query.Set(name, value)
			}
		}
		req, err := http.NewRequestWithContext(ctx, b.Verb, c.base+path+"?"+query.Encode(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		md, _ := metadata.FromOutgoingContext(ctx)
		for name, values := range md {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
		return req, nil
	}
	return nil, fmt.Errorf("no path of %s goes with %v", method, m)
}

func marshal(m proto.Message) []byte {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}

// flatten are the fields of a message that are set, by their path, as parameters have them.
func flatten(m protoreflect.Message, path string) map[string]string {
	out := map[string]string{}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := path + string(field.Name())
		switch {
		case field.IsList() || field.IsMap():
		case field.Kind() == protoreflect.MessageKind && field.Message().FullName() == "google.protobuf.FieldMask":
			out[name] = strings.Trim(string(marshal(v.Message().Interface())), `"`)
		case field.Kind() == protoreflect.MessageKind:
			for inner, value := range flatten(v.Message(), name+".") {
				out[inner] = value
			}
		default:
			out[name] = v.String()
		}
		return true
	})
	return out
}

// Invoke implements grpc.ClientConnInterface.
func (c *restConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	req, err := c.request(ctx, method, args.(proto.Message))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return restError(body)
	}
	return protojson.Unmarshal(body, reply.(proto.Message))
}

func restError(body []byte) error {
	st := &spb.Status{}
	if err := protojson.Unmarshal(body, st); err != nil {
		return fmt.Errorf("%q is no status: %w", body, err)
	}
	return status.ErrorProto(st)
}

// NewStream implements grpc.ClientConnInterface.
func (c *restConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &restStream{ctx: ctx, conn: c, method: method, streams: desc.ServerStreams}, nil
}

// restStream is a call by REST, or an event stream, as a call of gRPC.
type restStream struct {
	ctx     context.Context
	conn    *restConn
	method  string
	streams bool
	request proto.Message
	events  *eventSource
}

func (s *restStream) SendMsg(m any) error { s.request = m.(proto.Message); return nil }

func (s *restStream) CloseSend() error { return nil }

func (s *restStream) RecvMsg(m any) error {
	if !s.streams {
		return s.conn.Invoke(s.ctx, s.method, s.request, m)
	}
	if s.events == nil {
		follow := proto.CloneOf(s.request.(*turnsv1.FollowReplyRequest))
		last := ""
		if follow.GetOffset() > 0 {
			last = fmt.Sprintf("%s:%d", follow.GetReplyId(), follow.GetOffset())
		}
		follow.Offset = 0
		req, err := s.conn.request(s.ctx, s.method, follow)
		if err != nil {
			return err
		}
		if s.events, err = s.conn.open(req, last); err != nil {
			return err
		}
	}
	event, err := s.events.next()
	if err != nil {
		return err
	}
	raw, err := proto.Marshal(&turnsv1.FollowReplyResponse{Event: event})
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, m.(proto.Message))
}

func (s *restStream) Header() (metadata.MD, error) { return nil, nil }
func (s *restStream) Trailer() metadata.MD         { return nil }
func (s *restStream) Context() context.Context     { return s.ctx }

// eventSource is an event stream under way, as a browser has one.
type eventSource struct {
	status int
	body   io.ReadCloser
	lines  *bufio.Reader
	last   string // the last id
}

// open connects an event source, with the id of the last event if there was one.
func (c *restConn) open(req *http.Request, last string) (*eventSource, error) {
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		return nil, restError(body)
	}
	return &eventSource{status: resp.StatusCode, body: resp.Body, lines: bufio.NewReader(resp.Body), last: last}, nil
}

// next is the next event; io.EOF at the end.
func (e *eventSource) next() (*turnsv1.Event, error) {
	var event *turnsv1.Event
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			_ = e.body.Close()
			return nil, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			e.last = value
		case name == "data":
			event = &turnsv1.Event{}
			if err := protojson.Unmarshal([]byte(value), event); err != nil {
				return nil, err
			}
		case line == "\n" && event != nil:
			return event, nil
		}
	}
}
