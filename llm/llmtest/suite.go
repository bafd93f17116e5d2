package llmtest

import (
	"testing"

	"github.com/turnd/turnd/llm"
)

// Run checks an adapter against the promises of turns.Generator that do not depend on the vendor.
func Run(t *testing.T, a llm.Adapter) {
	t.Run("whole replies", func(t *testing.T) { runWhole(t, a) })
	t.Run("text", func(t *testing.T) { runText(t, a) })
	t.Run("tools and thinking", func(t *testing.T) { runTools(t, a) })
	t.Run("content", func(t *testing.T) { runContent(t, a) })
	t.Run("ends", func(t *testing.T) { runEnds(t, a) })
	t.Run("faults", func(t *testing.T) { runFaults(t, a) })
	t.Run("statuses", func(t *testing.T) { runStatuses(t, a) })
	t.Run("one request", func(t *testing.T) { runOnce(t, a) })
	t.Run("release", func(t *testing.T) { runRelease(t, a) })
	t.Run("limits", func(t *testing.T) { runLimits(t, a) })
}
