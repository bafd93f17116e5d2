package server

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// scopes has each method of turnd's own once, with the scope that it takes. A scope implies no other.
var scopes = map[string]access.Scope{
	turnsv1.TurnService_Turn_FullMethodName:            access.ScopeTurns,
	turnsv1.TurnService_SubmitTurn_FullMethodName:      access.ScopeTurns,
	turnsv1.TurnService_CancelReply_FullMethodName:     access.ScopeTurns,
	turnsv1.TurnService_RegenerateReply_FullMethodName: access.ScopeTurns,
	turnsv1.TurnService_SelectReply_FullMethodName:     access.ScopeTurns,
	turnsv1.TurnService_DeleteTurn_FullMethodName:      access.ScopeTurns,
	turnsv1.TurnService_FollowReply_FullMethodName:     access.ScopeRead,
	turnsv1.TurnService_GetTurn_FullMethodName:         access.ScopeRead,
	turnsv1.TurnService_ListTurns_FullMethodName:       access.ScopeRead,

	turnsv1.ConversationService_CreateConversation_FullMethodName: access.ScopeTurns,
	turnsv1.ConversationService_UpdateConversation_FullMethodName: access.ScopeTurns,
	turnsv1.ConversationService_DeleteConversation_FullMethodName: access.ScopeTurns,
	turnsv1.ConversationService_GetConversation_FullMethodName:    access.ScopeRead,
	turnsv1.ConversationService_ListConversations_FullMethodName:  access.ScopeRead,

	turnsv1.OperatorService_ListHeldReplies_FullMethodName:   access.ScopeOperator,
	turnsv1.OperatorService_ReleaseHeldReply_FullMethodName:  access.ScopeOperator,
	turnsv1.OperatorService_CompleteHeldReply_FullMethodName: access.ScopeOperator,
	turnsv1.OperatorService_ListProviderCalls_FullMethodName: access.ScopeOperator,
	turnsv1.OperatorService_SumProviderCalls_FullMethodName:  access.ScopeOperator,
	turnsv1.OperatorService_ListWorkers_FullMethodName:       access.ScopeOperator,
	turnsv1.OperatorService_ExplainTurn_FullMethodName:       access.ScopeOperator,
	turnsv1.OperatorService_Sweep_FullMethodName:             access.ScopeOperator,
}

// checkScopes fails for a method that is served and has no scope, which nobody could be let in to.
func checkScopes(served map[string]grpc.ServiceInfo) error {
	for service, info := range served {
		for _, m := range info.Methods {
			method := "/" + service + "/" + m.Name
			if _, ok := scopes[method]; ours(method) && !ok {
				return fmt.Errorf("method %s has no scope", method)
			}
		}
	}
	return nil
}

// mayCall refuses a caller without the scope of a method. A method that is not ours, or that nobody serves, has none.
func mayCall(id auth.Identity, method string) error {
	scope, ok := scopes[method]
	if !ok || id.May(scope) {
		return nil
	}
	return &turns.Error{Code: turns.CodeScopeMissing, Meta: map[string]string{"scope": string(scope)},
		Problem: fmt.Sprintf("this key or token lacks the scope %q, which %s takes", scope, method[strings.LastIndex(method, "/")+1:])}
}
