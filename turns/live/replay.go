package live

import "github.com/turnd/turnd/turns"

// replay streams an ended reply from its stored content. It makes no copy of it.
func (f *follower) replay(reply turns.Reply) (again bool, err error) {
	content := reply.Content
	reply.Content = nil
	pieces, err := partFrom(content, 0, f.offset)
	if err != nil || reply.Status == turns.StatusComplete && f.offset > reply.Length {
		return false, badCursor()
	}
	if f.start(&reply) && f.grow(pieces) {
		return f.end(reply), nil
	}
	return false, nil
}
