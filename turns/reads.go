package turns

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
)

// maxReplies bounds the replies of one user turn that are read at once; maxPage and defaultPage bound a list's page in
// entries, and pageBytes in bytes of content. replyBytes bounds the content of a reply wherever it is not followed, and
// turnBytes that of all replies to one turn: the newest have it first.
const (
	maxReplies  = 100
	maxPage     = 200
	defaultPage = 50
	pageBytes   = 1 << 20
	replyBytes  = 1 << 20
	turnBytes   = 4 << 20
)

// FollowReply finds a reply to follow by its own id, with its content if it has ended. An id that is a user turn's is one for
// FollowTarget.
func (s *Service) FollowReply(ctx context.Context, caller Caller, conversation ConversationID, id RowID) (ConversationKey, Reply, error) {
	key := KeyOf(caller.Tenant, conversation)
	reply, err := s.readSettled(ctx, key, ReplyID(id))
	if CodeOf(err) == CodeNotFound {
		return s.FollowTarget(ctx, caller, conversation, id)
	}
	return key, reply, err
}

// readSettled reads a reply. One in flight whose lease has run out is resolved first.
func (s *Service) readSettled(ctx context.Context, key ConversationKey, id ReplyID) (Reply, error) {
	reply, err := s.store.ReadReply(ctx, key, id)
	if err != nil || !reply.stale() {
		return reply, err
	}
	if err := s.resolve(ctx, key); err != nil {
		return reply, err
	}
	return s.store.ReadReply(ctx, key, id)
}

// FollowTarget finds the reply that an id names: a reply's own, or a user turn's, which stands for its live reply or,
// if none is live, its newest. A reply without an id says that the turn waits in line.
func (s *Service) FollowTarget(ctx context.Context, caller Caller, conversation ConversationID, id RowID) (ConversationKey, Reply, error) {
	key := KeyOf(caller.Tenant, conversation)
	turn, err := s.store.FindTurn(ctx, key, id)
	if err = s.whatDecodes(ctx, turn.ID.Row(), err); err != nil {
		return key, Reply{}, err
	}
	if turn.ID.Row() != id {
		reply, err := s.readSettled(ctx, key, ReplyID(id))
		return key, reply, err
	}
	st, err := s.lookup(ctx, LookupQuery{Tenant: caller.Tenant, Key: key, Turn: turn.ID})
	switch {
	case err != nil:
		return key, Reply{}, err
	case st.Live != nil:
		return key, *st.Live, nil
	case st.Newest != nil:
		return key, *st.Newest, nil
	case st.placeInLine(turn.ID) >= 0:
		s.advanceSoon(key)
		return key, Reply{Conversation: turn.Conversation, Turn: turn.ID}, nil
	}
	return key, Reply{}, NotFound("reply", "turn_id")
}

// GetTurn reads a user turn and all replies to it, oldest first, by the turn's id or that of one of its replies. Where
// content is longer than what is shown of it, the reply's Length says so. Where it does not decode, none is shown.
func (s *Service) GetTurn(ctx context.Context, caller Caller, conversation ConversationID, id RowID) (UserTurn, []Reply, error) {
	key := KeyOf(caller.Tenant, conversation)
	turn, err := s.store.FindTurn(ctx, key, id)
	if err = s.whatDecodes(ctx, turn.ID.Row(), err); err != nil {
		return UserTurn{}, nil, err
	}
	replies, err := s.store.RepliesTo(ctx, key, turn.ID, maxReplies)
	if err == nil && slices.ContainsFunc(replies, Reply.stale) {
		if err = s.resolve(ctx, key); err == nil {
			replies, err = s.store.RepliesTo(ctx, key, turn.ID, maxReplies)
		}
	}
	if err != nil {
		return UserTurn{}, nil, err
	}
	room := turnBytes
	for i := len(replies) - 1; i >= 0 && room > 0; i-- {
		if replies[i], err = s.shownReply(ctx, key, replies[i].ID); err != nil {
			return UserTurn{}, nil, err
		}
		room -= int(min(replies[i].Length, replyBytes))
	}
	return turn, replies, nil
}

// whatDecodes lets a read go on without what does not decode of a row, which is named in the log.
func (s *Service) whatDecodes(ctx context.Context, id RowID, err error) error {
	if !errors.Is(err, ErrUnreadable) {
		return err
	}
	s.logger.WarnContext(ctx, "a stored row does not decode, so it is shown without its content", "row_id", id.String())
	return nil
}

// shownReply reads a reply with what is shown of its content.
func (s *Service) shownReply(ctx context.Context, key ConversationKey, id ReplyID) (Reply, error) {
	r, err := s.store.ReadReply(ctx, key, id)
	if err = s.whatDecodes(ctx, id.Row(), err); err == nil {
		r.Content = s.cutContent(ctx, id, r.Content)
	}
	return r, err
}

// cutContent bounds what is shown of a reply. Pieces that make no log are shown as none.
func (s *Service) cutContent(ctx context.Context, id ReplyID, content []Piece) (shown []Piece) {
	log, err := LogOf(content)
	if err == nil {
		shown, _, err = log.From(0, replyBytes)
	}
	if err != nil {
		_ = s.whatDecodes(ctx, id.Row(), ErrUnreadable)
		return nil
	}
	return shown
}

// ListQuery asks for a page of the path to a leaf; a zero leaf is the conversation's current one.
type ListQuery struct {
	Conversation ConversationID
	Leaf         RowID
	PageSize     int
	PageToken    string
}

// TurnEntry is one user turn on a path, with its live reply or, if none is live, its newest.
type TurnEntry struct {
	Turn       UserTurn
	Reply      *Reply
	ReplyCount int
	Siblings   []TurnID
}

// ListTurns reads the path to a leaf, newest first. A page is bounded in entries and in bytes and holds at least one
// entry; the token of the next one is empty on the last.
func (s *Service) ListTurns(ctx context.Context, caller Caller, q ListQuery) ([]TurnEntry, string, error) {
	key := KeyOf(caller.Tenant, q.Conversation)
	from, err := s.listFrom(ctx, key, q)
	if err != nil || from.IsZero() {
		return nil, "", err
	}
	size, err := pageSize(q.PageSize)
	if err != nil {
		return nil, "", err
	}
	entries, next, err := s.userTurns(ctx, key, from, size)
	if errors.Is(err, ErrTurnDeleted) && q.Leaf.IsZero() && q.PageToken == "" {
		return nil, "", lostRace() // the current leaf was deleted since it was read, and there is another now
	}
	if err != nil {
		return nil, "", err
	}
	if err := s.decorate(ctx, key, entries); err != nil {
		return nil, "", err
	}
	entries, next = cutPage(entries, next)
	if err := s.showReplies(ctx, key, entries); err != nil {
		return nil, "", err
	}
	if next.IsZero() {
		return entries, "", nil
	}
	return entries, pageToken(next, q.Leaf), nil
}

// userTurns reads the user turns on a path, at least one and at most size, and the row after them. A read that ended at
// a long reply, before its user turn, goes on there.
func (s *Service) userTurns(ctx context.Context, key ConversationKey, from RowID, size int) (entries []TurnEntry, next RowID, err error) {
	for next = from; len(entries) == 0 && !next.IsZero(); {
		path, err := s.store.ReadPath(ctx, key, next, PathLimit{Rows: 2*size + 2, Bytes: 2 * pageBytes})
		if err != nil {
			return nil, next, err
		}
		if len(path) == 0 {
			return nil, next, s.noLeaf(ctx, key, next)
		}
		for _, row := range path {
			if row.Unreadable && row.User != nil {
				_ = s.whatDecodes(ctx, row.ID, ErrUnreadable)
			}
		}
		entries, next = pageOf(path, size)
	}
	return entries, next, nil
}

// noLeaf says why no path begins at a row.
func (s *Service) noLeaf(ctx context.Context, key ConversationKey, leaf RowID) error {
	_, err := s.store.FindTurn(ctx, key, leaf)
	switch {
	case errors.Is(err, ErrTurnDeleted):
		gone := TurnDeleted()
		gone.Field, gone.Problem = "leaf_id", "was deleted; list from another leaf"
		return gone
	case errors.Is(err, ErrNotFound):
		return NotFound("leaf in this conversation", "leaf_id")
	case err != nil && !errors.Is(err, ErrUnreadable):
		return err
	}
	waits := NotFound("leaf in this conversation", "leaf_id")
	waits.Problem = "waits in line, so it has no place in the tree yet; read it with GetTurn"
	return waits
}

// listFrom is the row a page starts at.
func (s *Service) listFrom(ctx context.Context, key ConversationKey, q ListQuery) (RowID, error) {
	c, err := s.store.ReadConversation(ctx, key)
	if err != nil {
		return RowID{}, err
	}
	if c.Deleted {
		return RowID{}, ConversationDeleted()
	}
	switch {
	case q.PageToken != "":
		return parsePageToken(q.PageToken, q.Leaf)
	case !q.Leaf.IsZero():
		return q.Leaf, nil
	}
	return c.Leaf, nil
}

// pageOf takes the user turns of a path, at most size, and the row after them.
func pageOf(path []PathRow, size int) (entries []TurnEntry, next RowID) {
	for _, row := range path {
		if row.User == nil {
			continue
		}
		if len(entries) == size {
			return entries, row.ID
		}
		entries = append(entries, TurnEntry{Turn: *row.User})
	}
	return entries, path[len(path)-1].Parent
}

// decorate adds to entries what the path does not hold.
func (s *Service) decorate(ctx context.Context, key ConversationKey, entries []TurnEntry) error {
	ids := make([]TurnID, len(entries))
	for i, e := range entries {
		ids[i] = e.Turn.ID
	}
	found, err := s.store.Entries(ctx, key, ids)
	if err != nil {
		return err
	}
	for i := range entries {
		e := found[entries[i].Turn.ID]
		entries[i].Reply, entries[i].ReplyCount, entries[i].Siblings = e.Reply, e.ReplyCount, e.Siblings
	}
	return nil
}

// showReplies reads the content of a page's replies, which the page's bound in bytes bounds too.
func (s *Service) showReplies(ctx context.Context, key ConversationKey, entries []TurnEntry) error {
	var positions []LogPosition
	var replies []*Reply
	for i := range entries {
		if r := entries[i].Reply; r != nil && r.Length > 0 {
			positions, replies = append(positions, LogPosition{Key: key, Reply: r.ID}), append(replies, r)
		}
	}
	views, err := s.store.ReadLogs(ctx, positions)
	if err != nil {
		return err
	}
	for i, v := range views {
		r := v.Reply
		if r.ID.IsZero() {
			if r, err = s.shownReply(ctx, key, replies[i].ID); isGone(err) || errors.Is(err, ErrNotFound) {
				continue // gone meanwhile
			}
		} else {
			r.Content = s.cutContent(ctx, r.ID, v.Pieces)
		}
		if err != nil {
			return err
		}
		*replies[i] = r
	}
	return nil
}

// cutPage bounds a page in bytes.
func cutPage(entries []TurnEntry, next RowID) ([]TurnEntry, RowID) {
	size := 0
	for i, e := range entries {
		size += SizeOf(e.Turn.Content)
		if e.Reply != nil {
			size += int(min(e.Reply.Length, pageBytes))
		}
		if i > 0 && size > pageBytes {
			return entries[:i], e.Turn.ID.Row()
		}
	}
	return entries, next
}

// pageToken names the row that the next page starts at. It is versioned, so that an old client's token is told apart
// from a broken one, and holds the leaf that was asked for.
func pageToken(next, leaf RowID) string {
	return base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{2}, next.UUID[:], leaf.UUID[:]))
}

// parsePageToken refuses a token of another leaf than the one asked for, if one is.
func parsePageToken(token string, leaf RowID) (RowID, error) {
	var id, of RowID
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) != 1+len(id.UUID)+len(of.UUID) || b[0] != 2 {
		return id, invalid("page_token", "is not one that a page gave; start again without it")
	}
	copy(id.UUID[:], b[1:])
	copy(of.UUID[:], b[1+len(id.UUID):])
	if !leaf.IsZero() && leaf != of {
		return id, invalid("page_token", "is of a page from another leaf_id; send the one it began with, or start again without it")
	}
	return id, nil
}

func pageSize(n int) (int, error) {
	switch {
	case n < 0 || n > maxPage:
		return 0, invalid("page_size", fmt.Sprintf("must be between 0 and %d", maxPage))
	case n == 0:
		return defaultPage, nil
	}
	return n, nil
}
