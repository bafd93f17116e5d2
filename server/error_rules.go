package server

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// rule is how one kind of failure looks on the wire.
type rule struct {
	code   codes.Code
	reason turnsv1.ErrorReason
	advice turns.Advice
	// waits says that a RetryInfo goes with it; least is its delay where the error itself names none.
	waits bool
	least time.Duration
	// resource is the type in ResourceInfo where the error itself names none.
	resource string
}

func (r rule) reasonName() string { return strings.TrimPrefix(r.reason.String(), "ERROR_REASON_") }

// errorRules has each code of the domain once. The comments of ErrorReason on the wire are its reference, and a test holds
// the two together. An advice that says to wait always has a delay with it, also where the wire leaves that open: advice
// without a number can't be followed.
var errorRules = map[turns.Code]rule{
	turns.CodeInvalidField:        {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_INVALID_FIELD, advice: turns.AdviceDoNotRetry},
	turns.CodeContentEmpty:        {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_CONTENT_EMPTY, advice: turns.AdviceDoNotRetry},
	turns.CodeContentTooLarge:     {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_CONTENT_TOO_LARGE, advice: turns.AdviceDoNotRetry},
	turns.CodePromptTooLarge:      {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_PROMPT_TOO_LARGE, advice: turns.AdviceDoNotRetry},
	turns.CodeUnknownModel:        {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_UNKNOWN_MODEL, advice: turns.AdviceDoNotRetry},
	turns.CodeInvalidCursor:       {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_INVALID_CURSOR, advice: turns.AdviceDoNotRetry},
	turns.CodeInvalidToolResult:   {code: codes.InvalidArgument, reason: turnsv1.ErrorReason_ERROR_REASON_INVALID_TOOL_RESULT, advice: turns.AdviceDoNotRetry},
	turns.CodeNotFound:            {code: codes.NotFound, reason: turnsv1.ErrorReason_ERROR_REASON_NOT_FOUND, advice: turns.AdviceDoNotRetry},
	turns.CodeTurnReused:          {code: codes.AlreadyExists, reason: turnsv1.ErrorReason_ERROR_REASON_TURN_ID_REUSED, advice: turns.AdviceNewID, resource: "turn"},
	turns.CodeConversationUsed:    {code: codes.AlreadyExists, reason: turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_ID_REUSED, advice: turns.AdviceNewID, resource: "conversation"},
	turns.CodeDeleted:             {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_DELETED, advice: turns.AdviceDoNotRetry},
	turns.CodeTurnDeleted:         {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_TURN_DELETED, advice: turns.AdviceDoNotRetry},
	turns.CodeWaitingForTools:     {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_WAITING_FOR_TOOLS, advice: turns.AdviceDoNotRetry},
	turns.CodeNoProgress:          {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_NO_PROGRESS, advice: turns.AdviceNewID},
	turns.CodeCapReached:          {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_CAP_REACHED, advice: turns.AdviceDoNotRetry},
	turns.CodeBusy:                {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_BUSY, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
	turns.CodeWrongState:          {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_WRONG_STATE, advice: turns.AdviceDoNotRetry},
	turns.CodeReplyChanged:        {code: codes.FailedPrecondition, reason: turnsv1.ErrorReason_ERROR_REASON_REPLY_CHANGED, advice: turns.AdviceDoNotRetry},
	turns.CodeConflict:            {code: codes.Aborted, reason: turnsv1.ErrorReason_ERROR_REASON_CONFLICT, advice: turns.AdviceSameIDNow, waits: true},
	turns.CodeStaleEpoch:          {code: codes.Aborted, reason: turnsv1.ErrorReason_ERROR_REASON_STALE_EPOCH, advice: turns.AdviceDoNotRetry},
	turns.CodeRateLimited:         {code: codes.ResourceExhausted, reason: turnsv1.ErrorReason_ERROR_REASON_RATE_LIMITED, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
	turns.CodeQuotaExceeded:       {code: codes.ResourceExhausted, reason: turnsv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
	turns.CodeOverloaded:          {code: codes.ResourceExhausted, reason: turnsv1.ErrorReason_ERROR_REASON_OVERLOADED, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
	turns.CodeStoreUnavailable:    {code: codes.Unavailable, reason: turnsv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
	turns.CodeDraining:            {code: codes.Unavailable, reason: turnsv1.ErrorReason_ERROR_REASON_DRAINING, advice: turns.AdviceSameIDNow, waits: true},
	turns.CodeUnauthenticated:     {code: codes.Unauthenticated, reason: turnsv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, advice: turns.AdviceDoNotRetry},
	turns.CodeIdentityUnavailable: {code: codes.Unavailable, reason: turnsv1.ErrorReason_ERROR_REASON_IDENTITY_UNAVAILABLE, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
	turns.CodeScopeMissing:        {code: codes.PermissionDenied, reason: turnsv1.ErrorReason_ERROR_REASON_SCOPE_MISSING, advice: turns.AdviceDoNotRetry},
	turns.CodeSuspended:           {code: codes.PermissionDenied, reason: turnsv1.ErrorReason_ERROR_REASON_SUSPENDED, advice: turns.AdviceDoNotRetry},
	turns.CodeUnimplemented:       {code: codes.Unimplemented, reason: turnsv1.ErrorReason_ERROR_REASON_UNIMPLEMENTED, advice: turns.AdviceDoNotRetry},
	turns.CodeInternal:            {code: codes.Internal, reason: turnsv1.ErrorReason_ERROR_REASON_INTERNAL, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second},
}

// ruleOf is a code's rule. A code without one would be a new code that nobody placed: it counts as a fault of turnd's own,
// and its text stays inside.
func ruleOf(c turns.Code) rule {
	if r, ok := errorRules[c]; ok {
		return r
	}
	return errorRules[turns.CodeInternal]
}

// libraryRules are for statuses that grpc-go and its health and reflection services make. Its RESOURCE_EXHAUSTED is a
// message beyond a limit of size, which waiting does not help.
var libraryRules = map[codes.Code]rule{
	codes.NotFound:          {code: codes.NotFound, reason: turnsv1.ErrorReason_ERROR_REASON_NOT_FOUND, advice: turns.AdviceDoNotRetry, resource: "service"},
	codes.Unimplemented:     errorRules[turns.CodeUnimplemented],
	codes.InvalidArgument:   errorRules[turns.CodeInvalidField],
	codes.Unavailable:       {code: codes.Unavailable, reason: turnsv1.ErrorReason_ERROR_REASON_DRAINING, advice: turns.AdviceSameIDNow, waits: true},
	codes.Canceled:          {code: codes.Canceled, advice: turns.AdviceSameIDNow},
	codes.DeadlineExceeded:  {code: codes.DeadlineExceeded, advice: turns.AdviceSameIDNow},
	codes.ResourceExhausted: {code: codes.ResourceExhausted, reason: turnsv1.ErrorReason_ERROR_REASON_CONTENT_TOO_LARGE, advice: turns.AdviceDoNotRetry},
}
