package main

// tokensAreBooked is P12: every row is closed, no answer of the provider is booked twice, and what is marked as reported
// is what the provider counted, token for token.
func (e *evidence) tokensAreBooked() {
	booked := map[string]string{}
	for _, row := range e.stored.calls {
		if row.Class == "" || row.EndTime == nil {
			e.rec.broke("P12", "call %s of reply %s is not closed", row.ID, row.Reply)
		}
		if row.Input+row.Output > 0 && row.Source != "reported" && row.Source != "estimated" {
			e.rec.broke("P12", "call %s has %d tokens of source %q", row.ID, row.Input+row.Output, row.Source)
		}
		if row.Wasted > row.Input+row.Output {
			e.rec.broke("P12", "call %s took %d tokens and wasted %d", row.ID, row.Input+row.Output, row.Wasted)
		}
		if row.ResponseID == "" {
			if row.Source == "reported" {
				e.rec.broke("P12", "call %s has reported tokens and no response", row.ID)
			}
			continue
		}
		if other, twice := booked[row.ResponseID]; twice {
			e.rec.broke("P12", "the answer %s is booked on calls %s and %s", row.ResponseID, other, row.ID)
		}
		booked[row.ResponseID] = row.ID
		e.isCounted(row)
	}
}

func (e *evidence) isCounted(row storedCall) {
	call, ok := e.byResponse[row.ResponseID]
	switch {
	case !ok:
		e.rec.broke("P12", "call %s names an answer %s that the provider never gave", row.ID, row.ResponseID)
	case call.IdempotencyKey != row.Key:
		e.rec.broke("P12", "call %s with key %s names the answer to a request with key %s", row.ID, row.Key, call.IdempotencyKey)
	case row.Source == "reported" && (int64(call.InputTokens) != row.Input || int64(call.OutputTokens) != row.Output):
		e.rec.broke("P12", "call %s is booked with %d and %d tokens as reported, the provider counted %d and %d", row.ID, row.Input, row.Output, call.InputTokens, call.OutputTokens)
	}
}
