package probe

import "github.com/turnd/turnd/turns"

// The size of a call. The question is short, and its answer long enough to be cut in the middle.
const (
	question   = "Count from 1 to 200 in words, separated by commas, without anything else."
	outputMost = 256
	// inputMost is generous: what vendors add to a question of a dozen words is not known.
	inputMost = 100
)

// Plan is the most that a probe spends.
type Plan struct {
	Calls int
	// InputTokens and OutputTokens are those of one call.
	InputTokens  int
	OutputTokens int
	// Cost is that of all calls by the endpoint's prices; it is only known if there are any.
	Cost   float64
	Priced bool
}

// Plan says what Run would spend at most.
func (c Config) Plan() Plan {
	p := Plan{InputTokens: inputMost, OutputTokens: outputMost, Priced: c.Endpoint.Prices != turns.Prices{}}
	steps, _ := c.steps()
	for _, s := range steps {
		p.Calls += s.calls
	}
	each := float64(inputMost)*c.Endpoint.Prices.Input + float64(outputMost)*c.Endpoint.Prices.Output
	p.Cost = float64(p.Calls) * each / 1e6
	return p
}
