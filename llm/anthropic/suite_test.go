package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAdapterKeepsThePromisesOfAllAdapters(t *testing.T) { llmtest.Run(t, anthropic.Adapter()) }

func FuzzACallKeepsItsPromisesWhateverIsStreamed(f *testing.F) { llmtest.Fuzz(f, anthropic.Adapter()) }

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, anthropic.Adapter()) }
