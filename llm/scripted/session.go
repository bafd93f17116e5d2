package scripted

import (
	"net/http"
	"slices"
)

// session is a conversation: replies run in it one at a time, and what was said in it can be listed.
type session struct {
	id      string
	replies []*keptReply
}

// sessions are guarded by the mutex of kept, the oldest forgotten first.
type sessions struct {
	byID  map[string]*session
	order []*session
}

func (s *sessions) open(id string) {
	if s.byID == nil {
		s.byID = make(map[string]*session)
	}
	one := &session{id: id}
	s.byID[id] = one
	s.order = append(s.order, one)
	if len(s.order) > maxStored {
		delete(s.byID, s.order[0].id)
		s.order[0] = nil
		s.order = s.order[1:]
	}
}

// enter returns the session that a reply is to run in, nil for none, unless it is unknown or another reply runs there.
func (s *sessions) enter(id string) (*session, *refusal) {
	if id == "" {
		return nil, nil
	}
	one := s.byID[id]
	if one == nil {
		return nil, &refusal{status: http.StatusNotFound, message: "this conversation was not found"}
	}
	if slices.ContainsFunc(one.replies, func(r *keptReply) bool { o, _, _ := r.gen.now(); return o == outcomeNone }) {
		return nil, &refusal{status: http.StatusBadRequest, kind: "conversation_locked", message: "another process works on this conversation"}
	}
	return one, nil
}

// forget takes a reply out of its session.
func (s *sessions) forget(r *keptReply) {
	if one := s.byID[r.session]; one != nil {
		one.replies = slices.DeleteFunc(one.replies, func(o *keptReply) bool { return o == r })
	}
}

// openSession makes a session.
func (k *kept) openSession(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions.open(id)
}

// inSession returns the replies of a session, the oldest first; ok is false for one that is not known.
func (k *kept) inSession(id string) (replies []*keptReply, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.sessions.byID[id]
	if one == nil {
		return nil, false
	}
	return slices.Clone(one.replies), true
}
