package wire_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func TestValuesThatNoVendorTakesAreRefusedByField(t *testing.T) {
	warm := func(t float64) turns.Options { return turns.Options{Temperature: &t} }
	for _, tt := range []struct {
		options turns.Options
		field   string
	}{
		{turns.Options{}, ""},
		{warm(0), ""},
		{warm(2), ""},
		{warm(-0.1), "temperature"},
		{warm(2.1), "temperature"},
		{warm(math.NaN()), "temperature"},
		{warm(math.Inf(1)), "temperature"},
		{turns.Options{StopSequences: []string{"a", "\n", " ", "d"}}, ""},
		{turns.Options{StopSequences: []string{"a", "b", "c", "d", "e"}}, "stop_sequences"},
		{turns.Options{StopSequences: []string{"a", ""}}, "stop_sequences[1]"},
	} {
		err := wire.CheckOptions(tt.options, 4)
		if tt.field == "" {
			require.NoError(t, err)
			continue
		}
		var refused *turns.Error
		require.True(t, errors.As(err, &refused))
		require.Equal(t, turns.CodeInvalidField, refused.Code)
		require.Equal(t, "input.options."+tt.field, refused.Field)
	}
}
