package main

import (
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/speed/load"
	"github.com/turnd/turnd/turns"
)

func TestAColumnOfIDsThatNobodyKnowsIsNotCopied(t *testing.T) {
	f := &filler{copies: 10}
	ids := map[string]copyKind{"conversation_key": keyOfCopy, "id": copiedID, "owner": sameID}
	columns := []column{{"conversation_key", "uuid"}, {"id", "uuid"}, {"owner", "uuid"}, {"content", "text"}}
	made, err := f.expressions(columns, ids)
	require.NoError(t, err)
	require.Contains(t, made[0], "sha256(")
	require.Contains(t, made[1], "md5(")
	require.Equal(t, []string{`s."owner"`, `s."content"`}, made[2:])

	_, err = f.expressions(append(slices.Clone(columns), column{"made_from", "uuid"}), ids)
	require.ErrorContains(t, err, "made_from")
	_, err = f.expressions(columns[1:], ids)
	require.ErrorContains(t, err, "of 3 columns of ids only 2 are there")
}

func TestCopiesAreSpreadOverTimeUpToNow(t *testing.T) {
	f := &filler{copies: 10}
	made, err := f.expressions([]column{{"create_time", "timestamp with time zone"}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{`s."create_time" - (10 - copy_number) * interval '100 milliseconds'`}, made)
}

func TestAnInputIsHashedAsTheServiceDoes(t *testing.T) {
	conversation := uuid.New()
	in := turns.Input{Conversation: turns.ConversationID{UUID: conversation}, Content: []turns.Block{turns.Text{Text: load.Ask}}}
	h := sha256.New()
	h.Write([]byte{1, 16})
	h.Write(conversation[:])
	h.Write(hashTail())
	require.Equal(t, turns.HashInput(in), h.Sum([]byte(hashName)))
}

func TestADiskThatIsTooSmallIsSaid(t *testing.T) {
	require.NoError(t, enoughDisk(t.TempDir(), 1))
	require.ErrorContains(t, enoughDisk(t.TempDir(), 1<<60), "set TMPDIR to a larger disk, or ROWS")
}

func TestARatioOfCallsIsTakenWithinARound(t *testing.T) {
	// A machine that is ten times as slow in the second round.
	costs := []map[string]callCost{
		{"large": {MS: 3}, "small": {MS: 2}}, {"large": {MS: 30}, "small": {MS: 20}}, {"large": {MS: 3}, "small": {MS: 1}},
	}
	ratio, large, small := against(costs, "large", "small", func(c callCost) float64 { return c.MS })
	require.InDelta(t, 1.5, ratio, 1e-9)
	require.InDelta(t, 3, large, 1e-9)
	require.InDelta(t, 2, small, 1e-9)
}

func TestCopiesStayAsLongAsTheyWereOnFewRowsToo(t *testing.T) {
	copies := smallRows / (2 * seedTurns)
	for _, p := range probes {
		spec := p.spec(load.Filled{Conversations: copies}, time.Second)
		if p.shape != load.Say {
			require.Zero(t, spec.Most, "%s lasts as long as its window", p.shape)
			continue
		}
		require.Positive(t, spec.Most)
		require.LessOrEqual(t, spec.Most*(tableRounds+1), copies/2, "a copy gets half a turn in all")
	}
}
