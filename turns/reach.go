package turns

// pathRows and pathBytes bound every read of a path for a request, in rows of both kinds and in bytes of stored content.
const (
	pathRows  = 2000
	pathBytes = 16 << 20
)

// A row of a path takes at least one token, and one more for each LeastBytesPerToken of its stored content. Beyond
// LeastBytesOfRow nothing is known of it: an image takes as many tokens as a small one would. No tokenizer needs as few for
// text, so what is not read for its least tokens would not have been in the window.
const (
	LeastBytesPerToken = 16
	LeastBytesOfRow    = 64 << 10
)

// Limit is how much of the path above its turn a question needs. With a pinned start, all up to that; else all up to where
// the newest reply by the same model began, and where there is none, as much as the window can hold.
func (q Question) Limit() PathLimit {
	limit := PathLimit{Rows: pathRows, Bytes: pathBytes}
	if !q.Pinned.IsZero() && q.Pinned != q.Turn.ID.Row() {
		limit.Until = q.Pinned
		return limit
	}
	limit.Model, limit.Tokens = q.Route.Model, q.Route.Limits.WindowTokens
	return limit
}
