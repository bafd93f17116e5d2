package server

import (
	"errors"
	"fmt"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// maxViolations bounds how many fields one status names.
const maxViolations = 16

// validator holds requests to the rules that stand on the wire's fields.
type validator struct{ rules protovalidate.Validator }

// newValidator compiles the rules of every request, so that the first request of a kind is no slower than the next.
func newValidator() (*validator, error) {
	rules, err := protovalidate.New(protovalidate.WithMessages(
		&turnsv1.TurnRequest{}, &turnsv1.SubmitTurnRequest{}, &turnsv1.FollowReplyRequest{}, &turnsv1.GetTurnRequest{},
		&turnsv1.ListTurnsRequest{}, &turnsv1.CreateConversationRequest{}, &turnsv1.GetConversationRequest{},
		&turnsv1.ListConversationsRequest{}, &turnsv1.UpdateConversationRequest{},
		&turnsv1.ListHeldRepliesRequest{}, &turnsv1.ReleaseHeldReplyRequest{}, &turnsv1.CompleteHeldReplyRequest{},
		&turnsv1.ListProviderCallsRequest{}, &turnsv1.SumProviderCallsRequest{},
	))
	if err != nil {
		return nil, fmt.Errorf("compile the wire's rules: %w", err)
	}
	return &validator{rules: rules}, nil
}

// check gives the fields at fault as fieldErrors; any other error is a rule that itself is broken.
func (v *validator) check(m proto.Message) error {
	err := v.rules.Validate(m)
	var broken *protovalidate.ValidationError
	if !errors.As(err, &broken) || len(broken.Violations) == 0 {
		return err
	}
	var fields fieldErrors
	for _, violation := range broken.Violations[:min(len(broken.Violations), maxViolations)] {
		fields = append(fields, fieldErrorOf(violation))
	}
	return fields
}

func fieldErrorOf(v *protovalidate.Violation) *turns.Error {
	e := &turns.Error{
		Code:    turns.CodeInvalidField,
		Field:   withoutKeys(protovalidate.FieldPathString(v.Proto.GetField())),
		Problem: v.Proto.GetMessage(),
	}
	if e.Field == "input.content" && v.Proto.GetRuleId() == "repeated.min_items" {
		e.Code, e.Problem = turns.CodeContentEmpty, "is missing; send a block with text"
	}
	return e
}

// withoutKeys drops the keys of maps from a path: they are the client's own words.
func withoutKeys(path string) string {
	for {
		from := strings.Index(path, `["`)
		if from < 0 {
			return path
		}
		to := strings.LastIndex(path, `"]`)
		if to < from {
			return path[:from]
		}
		path = path[:from] + path[to+2:]
	}
}
