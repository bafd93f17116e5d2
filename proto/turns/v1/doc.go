// Package turnsv1 is turnd's wire as Go sees it: messages, clients and server stubs of TurnService, ConversationService
// and OperatorService.
//
// All but this comment is generated from the .proto files in the same folder, whose comments are the reference: each
// field says what it means when it is unset, each error reason says what a client can do about it. Reply ids, turn ids
// and conversation ids are plain strings here; the rules on them (buf.validate) are checked by the server, not by these
// types.
//
// What surprises: a stream of TurnService.Turn ends with status OK also when the reply was abandoned or is held. Look at
// its last event.
package turnsv1
