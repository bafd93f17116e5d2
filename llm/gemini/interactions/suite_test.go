package interactions_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAdapterKeepsThePromisesOfAllAdapters(t *testing.T) {
	llmtest.Run(t, interactions.Adapter())
}

func TestAnInteractionInTheBackgroundIsAskedForAgain(t *testing.T) {
	llmtest.RunRecovery(t, interactions.Adapter(), llmtest.Recovery{Capabilities: turns.Capabilities{Resume: true, Cancel: true}})
}

func FuzzACallKeepsItsPromisesWhateverIsStreamed(f *testing.F) {
	llmtest.Fuzz(f, interactions.Adapter())
}

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, interactions.Adapter()) }
