package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// messages lists every message inside a message, itself first, by its path.
func messages(t *testing.T, m proto.Message) map[string]protoreflect.Message {
	found := map[string]protoreflect.Message{}
	require.NoError(t, protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		if inner, ok := p.Index(-1).Value.Interface().(protoreflect.Message); ok {
			_, path, _ := strings.Cut(p.Path.String(), ").")
			found[path] = inner
		}
		return nil
	}))
	return found
}

func TestAFieldThatIsNotKnownIsRefusedInEveryMessageOfAnInput(t *testing.T) {
	in := fullRequest().GetInput()
	require.NoError(t, refuseUnknown(in.ProtoReflect(), "input"))
	all := messages(t, in)
	require.Greater(t, len(all), 10)
	for path, m := range all {
		m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 4711, protowire.VarintType), 1))
		err := refuseUnknown(in.ProtoReflect(), "input")
		m.SetUnknown(nil)
		var e *turns.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, strings.TrimSuffix("input."+path, "."), e.Field)
		require.Contains(t, e.Problem, "4711")
	}
}

func TestAPathNamesNoKeyOfAMap(t *testing.T) {
	for path, want := range map[string]string{
		`conversation.labels["secret"]`:            "conversation.labels",
		`conversation.labels["a\"]b"].x`:           "conversation.labels.x",
		`input.content[3].text`:                    "input.content[3].text",
		`a["x"`:                                    "a",
		"input.options.tools[0].input_schema_json": "input.options.tools[0].input_schema_json",
	} {
		require.Equal(t, want, withoutKeys(path))
	}
}

func TestTheRulesOfEveryRequestThatIsServedAreCompiled(t *testing.T) {
	v, err := newValidator()
	require.NoError(t, err)
	require.NoError(t, v.check(fullRequest()))
	for _, bad := range []proto.Message{
		&turnsv1.TurnRequest{}, &turnsv1.SubmitTurnRequest{}, &turnsv1.FollowReplyRequest{}, &turnsv1.GetTurnRequest{},
		&turnsv1.ListTurnsRequest{}, &turnsv1.CreateConversationRequest{}, &turnsv1.GetConversationRequest{},
		&turnsv1.ListConversationsRequest{PageSize: -1}, &turnsv1.UpdateConversationRequest{},
	} {
		var fields fieldErrors
		require.ErrorAs(t, v.check(bad), &fields, "%T", bad)
		require.NotEmpty(t, fields[0].Field)
	}
}

func TestNoMoreFieldsAreNamedThanHaveRoom(t *testing.T) {
	v, err := newValidator()
	require.NoError(t, err)
	req := fullRequest()
	for range 100 {
		req.Input.Content = append(req.Input.Content, &turnsv1.Block{})
	}
	var fields fieldErrors
	require.ErrorAs(t, v.check(req), &fields)
	require.Len(t, fields, maxViolations)
}
