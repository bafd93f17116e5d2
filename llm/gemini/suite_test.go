package gemini_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAdapterKeepsThePromisesOfAllAdapters(t *testing.T) { llmtest.Run(t, gemini.Adapter()) }

func FuzzACallKeepsItsPromisesWhateverIsStreamed(f *testing.F) { llmtest.Fuzz(f, gemini.Adapter()) }

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, gemini.Adapter()) }
