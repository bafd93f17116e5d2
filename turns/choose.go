package turns

import "context"

// leafRows bounds how far down a branch its leaf is looked for.
const leafRows = 20_000

// Select makes another reply of its user turn the live one, and the newest leaf below it the conversation's: whoever goes back
// to a branch goes on at its end. The reply must have been complete once. Selecting the live reply moves the leaf alone, and
// again changes nothing.
func (s *Service) Select(ctx context.Context, caller Caller, conversation ConversationID, id ReplyID) (Reply, error) {
	key := KeyOf(caller.Tenant, conversation)
	turn, err := s.store.FindTurn(ctx, key, id.Row())
	if err != nil {
		return Reply{}, err
	}
	if turn.ID.Row() == id.Row() {
		return Reply{}, NotFound("reply", "reply_id")
	}
	for range submitRounds {
		st, err := s.lookup(ctx, LookupQuery{Tenant: caller.Tenant, Key: key, Turn: turn.ID, Cursor: id})
		switch {
		case err != nil:
			return Reply{}, err
		case st.Deleted:
			return Reply{}, ConversationDeleted()
		case st.Cursor == nil:
			return Reply{}, NotFound("reply", "reply_id")
		}
		selection, err := selectionOf(key, st)
		if err != nil {
			return Reply{}, err
		}
		if selection.Leaf, err = s.store.NewestLeaf(ctx, key, id.Row(), leafRows); err != nil {
			return Reply{}, err
		}
		if selection.Live && selection.Leaf == st.Leaf {
			return *st.Cursor, nil
		}
		won, err := s.store.Select(ctx, selection)
		if err != nil {
			return Reply{}, err
		}
		if won {
			reply, err := s.store.ReadReply(ctx, key, id)
			reply.Content = nil
			return reply, err
		}
	}
	return Reply{}, lostRace()
}

// selectionOf is the compare-and-set that makes the looked-up reply live, or says why it can't be.
func selectionOf(key ConversationKey, st Standing) (Selection, error) {
	chosen, live := *st.Cursor, st.Live
	sel := Selection{Key: key, ExpectVersion: st.Version, Turn: chosen.Turn, Select: chosen.ID}
	switch {
	case chosen.Status == StatusComplete:
		sel.Live = true
	case chosen.Status != StatusComplete && chosen.Reason != ReasonSuperseded:
		return sel, &Error{Code: CodeWrongState, Field: "reply_id", Problem: "was never complete; select one that was",
			Meta: map[string]string{"status": string(chosen.Status)}}
	case live != nil && live.Status.stoppable():
		return sel, wrongState(*live)
	case live != nil && live.ID != chosen.ID:
		sel.Supersede = live.ID
	}
	return sel, nil
}
