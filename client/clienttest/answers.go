package clienttest

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Play streams events and ends with OK, whether or not they end with a terminal one.
func Play(events ...*turnsv1.Event) Answer { return Fail(nil, events...) }

// Fail streams events and ends with a status.
func Fail(end error, events ...*turnsv1.Event) Answer {
	return func(c *Call) error {
		if err := c.Send(events...); err != nil {
			return err
		}
		return end
	}
}

// Respond answers a call that streams nothing.
func Respond(m proto.Message) Answer {
	return func(c *Call) error {
		c.response = m
		return nil
	}
}

// Hang streams events and then says nothing until the caller has gone.
func Hang(events ...*turnsv1.Event) Answer {
	return func(c *Call) error {
		if err := c.Send(events...); err != nil {
			return err
		}
		<-c.Done()
		return nil
	}
}

// Cut closes the connection as soon as the call has come, so that not even a header gets back.
func Cut() Answer {
	return func(c *Call) error {
		c.server.Cut()
		<-c.Done()
		return nil
	}
}

// CutWhen streams events, waits for a signal that they have arrived, and closes the connection.
func CutWhen(arrived <-chan struct{}, events ...*turnsv1.Event) Answer {
	return func(c *Call) error {
		if err := c.Send(events...); err != nil {
			return err
		}
		select {
		case <-arrived:
		case <-c.Done():
		}
		return Cut()(c)
	}
}

// Refusal is a status as turnd gives it. Without a delay it carries no RetryInfo.
func Refusal(code codes.Code, reason, advice string, delay time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "turnd", Reason: reason,
		Metadata: map[string]string{"retry": advice}}}
	if delay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	st, err := status.New(code, "refused for a test").WithDetails(details...)
	if err != nil {
		return err
	}
	return st.Err()
}
