package turns

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// refusing is a Store whose database has something against permits, a number of times.
type refusing struct {
	Store
	err   error
	times int
}

func (s *refusing) PermitCalls(context.Context, []CallPermit) ([]PermitResult, error) {
	if s.times--; s.times >= 0 {
		return nil, s.err
	}
	return []PermitResult{{Granted: true, Calls: 2}}, nil
}

func TestADatabaseThatRefusesAPermitIsReportedOnce(t *testing.T) {
	for err, lines := range map[error]int{errors.New("value out of range"): 1, Unavailable(errors.New("cut off")): 0} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			r := &run{call: new(NewCall), Service: &Service{store: &refusing{err: err, times: 20}, logger: slog.New(slog.NewTextHandler(&log, nil))}}
			require.True(t, r.permit(t.Context(), 0))
			require.Equal(t, lines, strings.Count(log.String(), "level=ERROR"), log.String())
			require.Equal(t, 2, r.reply.Calls)
		})
	}
}
