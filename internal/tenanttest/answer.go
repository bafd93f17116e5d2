package tenanttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Answer is all that a caller is told.
type Answer struct {
	Messages []proto.Message
	Status   *status.Status
	// Header and Trailer are the metadata that came with it.
	Header, Trailer metadata.MD
	ids             IDs
}

// maxMessages bounds what is read of a stream.
const maxMessages = 1000

// Ask calls a method and reads the answer to its end. ids are those in the request.
func Ask(ctx context.Context, conn grpc.ClientConnInterface, m Method, request proto.Message, ids IDs) (Answer, error) {
	a := Answer{ids: ids}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: m.IsStreamingServer()}, m.Path())
	if err == nil {
		err = stream.SendMsg(request)
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = stream.CloseSend()
	}
	if err != nil {
		return a, err
	}
	for err == nil {
		if len(a.Messages) > maxMessages {
			return a, fmt.Errorf("%s goes on without an end", m)
		}
		message := dynamicpb.NewMessage(m.Output())
		if err = stream.RecvMsg(message); err == nil {
			a.Messages = append(a.Messages, message)
		}
		if err == nil && !m.IsStreamingServer() {
			err = io.EOF // RecvMsg has read the status too
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	a.Status = status.Convert(err)
	if a.Header, err = stream.Header(); err != nil && a.Status.Code() == codes.OK {
		return a, err
	}
	a.Trailer = stream.Trailer()
	return a, nil
}

// Text is the answer with another set of ids in the place of its own. Answers of failures are to the byte what came; in others
// what the server drew at random or read from a clock is left out, since two calls of one tenant would differ in it too.
func (a Answer) Text(as IDs) string {
	var b strings.Builder
	for _, m := range a.Messages {
		steady(m.ProtoReflect())
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		fmt.Fprintf(&b, "message %s %v\n", raw, err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(a.Status.Proto())
	fmt.Fprintf(&b, "status %s %v\n", raw, err)
	writeMetadata(&b, "header", a.Header)
	writeMetadata(&b, "trailer", a.Trailer)
	text := a.ids.as(as, b.String())
	if len(a.Messages) > 0 {
		text = withoutOthers(text, as)
	}
	return text
}

func writeMetadata(b *strings.Builder, kind string, md metadata.MD) {
	keys := make([]string, 0, len(md))
	for key := range md {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		fmt.Fprintf(b, "%s %s: %q\n", kind, key, md[key])
	}
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// withoutOthers numbers ids that were not asked about by the order in which they first appear.
func withoutOthers(text string, known IDs) string {
	numbers := map[string]int{}
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		if id == known.Conversation || id == known.Turn || id == known.Reply {
			return id
		}
		if numbers[id] == 0 {
			numbers[id] = len(numbers) + 1
		}
		return fmt.Sprintf("id %d", numbers[id])
	})
}

// steady takes times out of a message, at any depth.
func steady(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Kind() != protoreflect.MessageKind || field.IsMap() {
			return true
		}
		switch name := field.Message().FullName(); {
		case name == "google.protobuf.Timestamp" || name == "google.protobuf.Duration":
			m.Clear(field)
		case field.IsList():
			for i := range v.List().Len() {
				steady(v.List().Get(i).Message())
			}
		default:
			steady(v.Message())
		}
		return true
	})
}

// Others are ids of somebody's that the answer names although they were not asked about.
func (a Answer) Others(somebodys []IDs) (named []string) {
	text := a.Text(a.ids)
	for _, raw := range a.Messages {
		text += fmt.Sprint(raw)
	}
	for _, ids := range somebodys {
		for _, id := range []string{ids.Conversation, ids.Turn, ids.Reply} {
			if id != a.ids.Conversation && id != a.ids.Turn && id != a.ids.Reply && strings.Contains(text, id) {
				named = append(named, id)
			}
		}
	}
	return named
}
