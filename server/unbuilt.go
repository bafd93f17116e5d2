package server

import turnsv1 "github.com/turnd/turnd/proto/turns/v1"

// unbuilt are the methods that the wire names and this server does not serve, each with what a caller is told. They are
// refused before their request is looked at.
var unbuilt = map[string]string{
	turnsv1.ConversationService_DeleteConversation_FullMethodName: "a conversation can't be deleted yet",
	turnsv1.TurnService_DeleteTurn_FullMethodName:                 "a turn can't be deleted yet",
}
