package turns

import "context"

// Select makes another reply of its user turn the live one and the conversation's leaf. It must have been complete once.
// Selecting the live reply changes nothing.
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
		st, err := s.lookup(ctx, LookupQuery{Key: key, Turn: turn.ID, Cursor: id})
		switch {
		case err != nil:
			return Reply{}, err
		case st.Deleted:
			return Reply{}, ConversationDeleted()
		case st.Cursor == nil:
			return Reply{}, NotFound("reply", "reply_id")
		case st.Cursor.Status == StatusComplete:
			return *st.Cursor, nil
		}
		selection, err := selectionOf(key, st)
		if err != nil {
			return Reply{}, err
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
