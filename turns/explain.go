package turns

import (
	"context"
	"maps"
)

// Bounds of a story: of a turn with more replies or calls the newest are told of.
const (
	storyReplies = 50
	storyCalls   = 500
)

// Explain reads what became of a turn, which is named by its own id or by that of one of its replies.
func (s *Service) Explain(ctx context.Context, caller Caller, conversation ConversationID, row RowID) (Story, error) {
	return s.store.ReadStory(ctx, StoryQuery{Key: KeyOf(caller.Tenant, conversation), Row: row, Replies: storyReplies, Calls: storyCalls})
}

// SumRepeats sums the repeated deliveries of the tenant by layer. A filter over what only calls have chooses none.
func (s *Service) SumRepeats(ctx context.Context, caller Caller, f CallFilter) (map[Layer]int64, error) {
	filter, err := f.of(caller.Tenant)
	if err != nil || f.ofCallsAlone() {
		return nil, err
	}
	sums, err := s.store.SumRepeats(ctx, filter)
	maps.DeleteFunc(sums, func(layer Layer, _ int64) bool { return f.Layer != "" && layer != f.Layer })
	return sums, err
}
