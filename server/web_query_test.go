package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// A proxy may let a request pass by its path: what is done is what the path says.
func TestAParameterCannotSayAnotherThingThanThePath(t *testing.T) {
	f := newFake()
	h := start(t, f)
	other, path := otherID.String(), "/v1/conversations/"+conversationID.String()
	for _, c := range []struct{ method, path, body string }{
		{"GET", path + "?conversation_id=" + other, ""},
		{"GET", path + "?conversationId=" + other, ""},
		{"GET", path + "/turns?conversationId=" + other, ""},
		{"GET", path + "/turns/" + turnID.String() + "?replyId=" + replyID.String(), ""},
		{"DELETE", path + "?conversation_id=" + other, ""},
		{"PATCH", path + "?conversation.conversationId=" + other, `{"title":"t"}`},
		{"POST", path + "/turns?input.conversationId=" + other, `{"turnId":"` + turnID.String() + `","content":[{"text":{"text":"hello"}}]}`},
		{"POST", path + "/replies/" + replyID.String() + ":cancel?conversation_id=" + other, "{}"},
		{"GET", path + "?a;b", ""},
		{"GET", path + "?page_size=%zz", ""},
		{"GET", path + "/replies/" + replyID.String() + "/events?offset=3", ""},
		{"GET", path + "/replies/" + replyID.String() + "/events?a;b", ""},
	} {
		resp, body := exchange(t, h, c.method, c.path, c.body)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, c.path)
		require.Equal(t, "INVALID_FIELD", info(t, restError(t, body), codes.InvalidArgument).GetReason())
	}
	require.Zero(t, f.submissions())
}

func TestAPlainClientOfConnectNeedNotNameTheProtocol(t *testing.T) {
	f := newFake()
	h := start(t, f)
	for _, kind := range []string{"application/json", "application/json; charset=utf-8"} {
		resp, body := exchange(t, h, http.MethodPost, "/turns.v1.TurnService/SubmitTurn",
			`{"input":{"turnId":"`+turnID.String()+`","content":[{"text":{"text":"hello"}}]}}`, "Content-Type", kind)
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
	}
	require.Equal(t, 2, f.submissions())
}
