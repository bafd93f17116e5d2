package turns

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEstimateIsLearnedFromWhatFinishedCallsOfTheSameModelTook(t *testing.T) {
	s := &Service{}
	route := Route{Provider: "p", ProviderModel: "m", Limits: Limits{MaxOutputTokens: 1000}}
	u, low, high := s.estimate(route, 70, 35)
	require.Equal(t, Usage{Input: 20, Output: 10, Source: SourceEstimated, Calls: 1}, u, "the prior")
	require.Equal(t, []int64{10, 1000}, []int64{low, high})
	for range 40 {
		s.estimates.learn(route, 1000, 500, Usage{Input: 100, Output: 250})
	}
	u, low, _ = s.estimate(route, 70, 35)
	require.EqualValues(t, 7, u.Input)
	require.EqualValues(t, 18, u.Output)
	require.EqualValues(t, 18, low)
	other, _, _ := s.estimate(Route{Provider: "p", ProviderModel: "another"}, 70, 35)
	require.EqualValues(t, 20, other.Input, "another model has another tokenizer")
}

func TestWhatALaterCallTookWeighsMoreThanWhatAnOldOneDid(t *testing.T) {
	s := &Service{}
	route := Route{ProviderModel: "m"}
	for range 64 {
		s.estimates.learn(route, 400, 400, Usage{Input: 100, Output: 100})
	}
	for range 64 {
		s.estimates.learn(route, 400, 400, Usage{Input: 200, Output: 200})
	}
	in, out := s.estimates.tokens(route, 400, 400)
	require.InDelta(t, 200, in, 4)
	require.InDelta(t, 200, out, 4)
}

func TestARatioThatNoTokenizerHasIsNotBelieved(t *testing.T) {
	s := &Service{}
	route := Route{ProviderModel: "m"}
	s.estimates.learn(route, 1, 1, Usage{Input: 1_000_000, Output: 1_000_000})
	in, out := s.estimates.tokens(route, 100, 100)
	require.EqualValues(t, 200, in)
	require.EqualValues(t, 200, out)
	s.estimates.learn(route, 0, 0, Usage{Input: 5, Output: 5})
	s.estimates.learn(route, 100, 100, Usage{})
	require.Len(t, s.estimates.models, 1)
}

func TestAUsageCostsWhatThePriceTableSays(t *testing.T) {
	u := Usage{Input: 1000, CacheRead: 600, CacheWrite: 100, Output: 50, Reasoning: 20}
	require.EqualValues(t, 300*3+50*15+600*0.3+100*3.75, Prices{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}.cost(u))
	require.EqualValues(t, 1000*3+50*15, Prices{Input: 3, Output: 15}.cost(u), "cached input without a price of its own is input")
	require.Zero(t, Prices{}.cost(u))
}
