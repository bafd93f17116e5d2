package turns

// An archive holds what has ended. What has not is put into it as if its worker had gone at the moment of the copy: who has
// the copy has no worker that could go on.

// unended are the replies of one conversation that were put into an archive as ended, by id.
type unended map[ReplyID]*ArchivedRow

// end makes an ended reply of one that is in flight or held, whose stored log and calls are given. Its end is its
// beginning, so that two copies of the same reply are the same.
func (u unended) end(r *ArchivedRow, log []Piece, calls []ArchivedCall) error {
	content, err := EncodePieces(log)
	if err != nil {
		return err
	}
	switch {
	case r.CancelRequested:
		r.Reason = ReasonCancelled
	case r.Status == StatusHeld:
		r.Reason = ReasonHeldReleased
	default:
		r.Reason = ReasonShutdown
	}
	r.Status, r.Content, r.EndTime = StatusAbandoned, RawJSON(content), r.CreateTime
	u[ReplyID(r.ID)] = r
	var sum Usage
	for i := range calls {
		u.close(&calls[i])
		sum = sum.Add(calls[i].usage())
	}
	r.InputTokens, r.CacheReadTokens, r.CacheWriteTokens = sum.Input, sum.CacheRead, sum.CacheWrite
	r.OutputTokens, r.ReasoningTokens, r.TokenSource = sum.Output, sum.Reasoning, sum.Source
	r.WastedTokens, r.CostMicros, r.ProviderCalls = sum.Wasted, sum.CostMicros, sum.Calls
	return nil
}

// close closes a call that is open as one of which nobody knows what became: by estimate, and at no price, since prices are
// not stored. A closed one stays as it is.
func (u unended) close(c *ArchivedCall) {
	if c.Class != "" {
		return
	}
	c.EndTime = c.CreateTime
	if c.SubmittedAt.IsZero() {
		c.Class, c.Phase = ClassNotSent, PhaseNone
		return
	}
	cause, received := ReasonAmbiguous, 0
	if r := u[c.Reply]; r != nil {
		cause, received = r.Reason, int(r.LogLen)
	}
	c.Class, c.Phase, c.TokenSource, c.WasteCause = ClassAmbiguous, PhaseWritten, SourceEstimated, string(cause)
	c.InputTokens, c.OutputTokens = EstimateTokens(int(c.RequestBytes)), EstimateTokens(received)
	c.WastedTokens, c.OutputLow = c.InputTokens+c.OutputTokens, c.OutputTokens
}

func (c *ArchivedCall) usage() Usage {
	return Usage{Input: c.InputTokens, CacheRead: c.CacheReadTokens, CacheWrite: c.CacheWriteTokens, Output: c.OutputTokens,
		Reasoning: c.ReasoningTokens, Source: c.TokenSource, Wasted: c.WastedTokens, CostMicros: c.CostMicros, Calls: 1}
}

// Bury makes the mark of a deleted conversation, of which nothing is left to erase.
func (c *ArchivedConversation) Bury() {
	if c.DeletedAt.IsZero() {
		return
	}
	c.Title, c.Labels, c.Defaults, c.Leaf, c.LastTurn = "", nil, "", RowID{}, TurnID{}
	if c.ErasedAt.IsZero() {
		c.ErasedAt = c.DeletedAt
	}
}
