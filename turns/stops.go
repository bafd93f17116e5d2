package turns

import "context"

// Stops is the part of a Store by which people stop and choose.
type Stops interface {
	// RequestStop asks for a stop of a user turn's generation, if that is still its current one (0: whichever is): nothing of
	// it is claimed, revived or salvaged any more, and the owner of its reply in flight learns of it at its next checkpoint. A
	// held reply is abandoned as cancelled at once: its open calls are closed as ambiguous, estimated from their request, and
	// added to its usage. A turn whose live reply is complete stays as it is. The conversation's
	// version grows, so that a claim that was computed before is lost. It returns the turn's live reply, or its newest, without
	// content, as it now stands; a missing turn, and one in line, is CodeNotFound. Again is no error. A turn that is to be
	// answered instead is noted as by, if not zero and this is the first to ask.
	RequestStop(ctx context.Context, key ConversationKey, turn TurnID, generation int32, by TurnID) (Reply, error)
	// Select makes another reply of a user turn the live one: Supersede, if not zero, goes from complete to
	// abandoned(superseded), and Select from abandoned(superseded) to complete, in one commit, and the conversation's leaf
	// becomes Leaf. A reply that is live already (Live) must be complete, and only the leaf moves. It is won only if the
	// conversation is at ExpectVersion and not deleted, and both are as said.
	Select(ctx context.Context, s Selection) (won bool, err error)
}

// Selection is one Select.
type Selection struct {
	Key           ConversationKey
	ExpectVersion int64
	Turn          TurnID
	Select        ReplyID
	Supersede     ReplyID
	// Leaf is Select or a row below it, as NewestLeaf gave it at ExpectVersion; zero is Select.
	Leaf RowID
	// Live says that Select is complete. Supersede is zero then.
	Live bool
}
