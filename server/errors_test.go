package server_test

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// wireErrors is what the comments of ErrorReason promise for each code of the domain.
var wireErrors = map[turns.Code]struct {
	code   codes.Code
	advice string
	detail string // besides ErrorInfo
	retry  bool
}{
	turns.CodeInvalidField:        {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeContentEmpty:        {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeContentTooLarge:     {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodePromptTooLarge:      {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeUnknownModel:        {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeInvalidCursor:       {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeInvalidToolResult:   {codes.InvalidArgument, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeNotFound:            {codes.NotFound, "DO_NOT_RETRY", "ResourceInfo", false},
	turns.CodeTurnReused:          {codes.AlreadyExists, "NEW_ID", "ResourceInfo", false},
	turns.CodeConversationUsed:    {codes.AlreadyExists, "NEW_ID", "ResourceInfo", false},
	turns.CodeDeleted:             {codes.FailedPrecondition, "DO_NOT_RETRY", "PreconditionFailure", false},
	turns.CodeTurnDeleted:         {codes.FailedPrecondition, "DO_NOT_RETRY", "PreconditionFailure", false},
	turns.CodeWaitingForTools:     {codes.FailedPrecondition, "DO_NOT_RETRY", "PreconditionFailure", false},
	turns.CodeNoProgress:          {codes.FailedPrecondition, "NEW_ID", "PreconditionFailure", false},
	turns.CodeCapReached:          {codes.FailedPrecondition, "DO_NOT_RETRY", "PreconditionFailure", false},
	turns.CodeBusy:                {codes.FailedPrecondition, "SAME_ID_AFTER_WAIT", "PreconditionFailure", true},
	turns.CodeWrongState:          {codes.FailedPrecondition, "DO_NOT_RETRY", "PreconditionFailure", false},
	turns.CodeReplyChanged:        {codes.FailedPrecondition, "DO_NOT_RETRY", "PreconditionFailure", false},
	turns.CodeConflict:            {codes.Aborted, "SAME_ID_NOW", "", true},
	turns.CodeStaleEpoch:          {codes.Aborted, "DO_NOT_RETRY", "", false},
	turns.CodeRateLimited:         {codes.ResourceExhausted, "SAME_ID_AFTER_WAIT", "", true},
	turns.CodeQuotaExceeded:       {codes.ResourceExhausted, "SAME_ID_AFTER_WAIT", "QuotaFailure", true},
	turns.CodeOverloaded:          {codes.ResourceExhausted, "SAME_ID_AFTER_WAIT", "", true},
	turns.CodeStoreUnavailable:    {codes.Unavailable, "SAME_ID_AFTER_WAIT", "", true},
	turns.CodeDraining:            {codes.Unavailable, "SAME_ID_NOW", "", true},
	turns.CodeUnauthenticated:     {codes.Unauthenticated, "DO_NOT_RETRY", "", false},
	turns.CodeIdentityUnavailable: {codes.Unavailable, "SAME_ID_AFTER_WAIT", "", true},
	turns.CodeScopeMissing:        {codes.PermissionDenied, "DO_NOT_RETRY", "", false},
	turns.CodeSuspended:           {codes.PermissionDenied, "DO_NOT_RETRY", "", false},
	turns.CodeUnimplemented:       {codes.Unimplemented, "DO_NOT_RETRY", "BadRequest", false},
	turns.CodeInternal:            {codes.Internal, "SAME_ID_AFTER_WAIT", "", true},
}

// unproduced are the reasons of the wire that nothing here leads to yet.
var unproduced = []string{
	"UNSPECIFIED", "PROVIDER_UNAVAILABLE",
}

// failing is a server whose domain fails each delivery with an error.
func failing(t *testing.T, err error, change ...func(*server.Config)) *servertest.Harness {
	f := newFake()
	f.onSubmit = func(turns.Caller, turns.Delivery) (turns.Submission, error) { return turns.Submission{}, err }
	return start(t, f, change...)
}

func submit(t testing.TB, h *servertest.Harness) error {
	_, err := turnsv1.NewTurnServiceClient(h.Conn).SubmitTurn(t.Context(), &turnsv1.SubmitTurnRequest{Input: input()})
	return err
}

func TestEveryCodeOfTheDomainHasItsStatusReasonAdviceAndDetails(t *testing.T) {
	for code, want := range wireErrors {
		t.Run(string(code), func(t *testing.T) {
			h := failing(t, &turns.Error{Code: code, Field: "input.turn_id", Problem: "is wrong", Meta: map[string]string{"limit": "7"}})
			_, streamed := turn(t, h, &turnsv1.TurnRequest{Input: input()})
			for _, err := range []error{submit(t, h), streamed} {
				got := info(t, err, want.code)
				require.Equal(t, string(code), got.GetReason())
				require.Equal(t, want.advice, got.GetMetadata()["retry"])
				if code != turns.CodeInternal {
					require.Equal(t, "7", got.GetMetadata()["limit"])
					require.Equal(t, "input.turn_id: is wrong", status.Convert(err).Message())
				}
				require.Equal(t, want.detail == "BadRequest", detail[*errdetails.BadRequest](err) != nil)
				require.Equal(t, want.detail == "ResourceInfo", detail[*errdetails.ResourceInfo](err) != nil)
				require.Equal(t, want.detail == "PreconditionFailure", detail[*errdetails.PreconditionFailure](err) != nil)
				require.Equal(t, want.detail == "QuotaFailure", detail[*errdetails.QuotaFailure](err) != nil)
				require.Equal(t, want.retry, detail[*errdetails.RetryInfo](err) != nil)
			}
		})
	}
}

func TestTheTableOfErrorsIsComplete(t *testing.T) {
	known := map[string]bool{}
	for code := range wireErrors {
		known[string(code)] = true
	}
	for _, code := range domainCodes(t) {
		require.True(t, known[code], "the domain's code %s has no line in the table", code)
	}
	for _, reason := range unproduced {
		require.False(t, known[reason], "%s is produced and listed as not produced", reason)
		known[reason] = true
	}
	for _, name := range turnsv1.ErrorReason_name {
		require.True(t, known[strings.TrimPrefix(name, "ERROR_REASON_")], "%s is neither produced nor listed", name)
	}
	require.Len(t, known, len(turnsv1.ErrorReason_name))
}

// domainCodes reads the constants of turns.Code from their source.
func domainCodes(t *testing.T) (found []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../turns/errors.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if name, typed := specType(spec, ok); !typed || name != "Code" {
			return true
		}
		s, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		found = append(found, s)
		return true
	})
	require.NotEmpty(t, found)
	return found
}

func specType(spec *ast.ValueSpec, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	id, ok := spec.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return id.Name, true
}

func TestTheDelayToWaitIsTheErrorsOwnOrElseNotNothing(t *testing.T) {
	own := submit(t, failing(t, &turns.Error{Code: turns.CodeBusy, Problem: "busy", RetryAfter: 7 * time.Second}))
	require.Equal(t, 7*time.Second, detail[*errdetails.RetryInfo](own).GetRetryDelay().AsDuration())
	none := submit(t, failing(t, &turns.Error{Code: turns.CodeBusy, Problem: "busy"}))
	require.Equal(t, time.Second, detail[*errdetails.RetryInfo](none).GetRetryDelay().AsDuration())
}

func TestWhatCanNeverSucceedIsNotToldToWait(t *testing.T) {
	err := submit(t, failing(t, &turns.Error{Code: turns.CodeQuotaExceeded, Problem: "too much for any day", Final: true,
		Meta: map[string]string{"subject": "tenant"}}))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Nil(t, detail[*errdetails.RetryInfo](err))
	require.Equal(t, "DO_NOT_RETRY", detail[*errdetails.ErrorInfo](err).GetMetadata()["retry"])
	require.Equal(t, "tenant", detail[*errdetails.QuotaFailure](err).GetViolations()[0].GetSubject())
}

func TestWhatIsMissingIsNamedByKind(t *testing.T) {
	err := submit(t, failing(t, turns.NotFound("conversation", "input.conversation_id")))
	require.Equal(t, "conversation", detail[*errdetails.ResourceInfo](err).GetResourceType())
}

func TestACauseIsLoggedOnceAndNeverReachesTheClient(t *testing.T) {
	const secret = "host=db password=hunter2"
	for name, err := range map[string]error{
		"unknown error":     errors.New(secret),
		"unavailable store": turns.Unavailable(errors.New(secret)),
		"unknown code":      &turns.Error{Code: "NEVER_HEARD_OF", Problem: secret},
		"internal":          &turns.Error{Code: turns.CodeInternal, Problem: secret},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h := failing(t, err, func(c *server.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			got := submit(t, h)
			info(t, got, status.Code(got))
			require.NotContains(t, status.Convert(got).Proto().String(), "hunter2")
			require.NoError(t, h.Stop())
			require.Equal(t, 1, strings.Count(log.String(), "\n"))
			require.Contains(t, log.String(), "hunter2")
		})
	}
}

func TestAFaultOfTurndsOwnGivesAnIDThatItsLogHasToo(t *testing.T) {
	var log bytes.Buffer
	h := failing(t, errors.New("boom"), func(c *server.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	err := submit(t, h)
	id := info(t, err, codes.Internal).GetMetadata()["correlation_id"]
	require.NotEmpty(t, id)
	require.Contains(t, err.Error(), id)
	require.NoError(t, h.Stop())
	require.Contains(t, log.String(), id)
}

func TestAPanicIsAnInternalErrorAndWhatItSaysStaysOutOfTheLog(t *testing.T) {
	var log bytes.Buffer
	f := newFake()
	f.onSubmit = func(turns.Caller, turns.Delivery) (turns.Submission, error) { panic("the prompt was: my secret") }
	f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
		panic(errors.New("my secret"))
	}
	h := start(t, f, func(c *server.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	info(t, submit(t, h), codes.Internal)
	_, err := follow(t, h, 0)
	info(t, err, codes.Internal)
	require.NoError(t, h.Stop())
	require.Contains(t, log.String(), "goroutine")
	require.NotContains(t, log.String(), "my secret")
}

func TestAMethodThatDoesNotExistIsUnimplementedWithDetails(t *testing.T) {
	h := start(t, newFake())
	for _, method := range []string{"/turns.v1.TurnService/Nope", "/no.such.Service/Nope"} {
		err := invoke(t, h, method, &emptypb.Empty{}, &emptypb.Empty{})
		require.Equal(t, "UNIMPLEMENTED", info(t, err, codes.Unimplemented).GetReason())
	}
}
