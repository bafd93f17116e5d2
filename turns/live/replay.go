package live

import "github.com/turnd/turnd/turns"

// replay streams an ended reply from its stored content. It makes no copy of it.
func (f *follower) replay(reply turns.Reply) error {
	content := reply.Content
	reply.Content = nil
	pieces, err := partFrom(content, 0, f.offset)
	if err != nil || reply.Status == turns.StatusComplete && f.offset > reply.Length {
		return badCursor()
	}
	if f.start(reply) && f.grow(pieces) {
		f.emit(turns.Ended{Reply: reply})
	}
	return nil
}
