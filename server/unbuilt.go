package server

import turnsv1 "github.com/turnd/turnd/proto/turns/v1"

const noOperator = "this server offers nothing for operators beyond its ops listener yet"

// unbuilt are the methods that the wire names and this server does not serve, each with what a caller is told. They are
// refused before their request is looked at.
var unbuilt = map[string]string{
	turnsv1.ConversationService_DeleteConversation_FullMethodName: "a conversation can't be deleted yet",
	turnsv1.OperatorService_ListHeldReplies_FullMethodName:        noOperator,
	turnsv1.OperatorService_ReleaseHeldReply_FullMethodName:       noOperator,
	turnsv1.OperatorService_CompleteHeldReply_FullMethodName:      noOperator,
	turnsv1.OperatorService_ListProviderCalls_FullMethodName:      noOperator,
	turnsv1.OperatorService_SumProviderCalls_FullMethodName:       noOperator,
	turnsv1.OperatorService_ListWorkers_FullMethodName:            noOperator,
}
