package openai_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAdapterKeepsThePromisesOfAllAdapters(t *testing.T) { llmtest.Run(t, openai.Adapter()) }

func FuzzACallKeepsItsPromisesWhateverIsStreamed(f *testing.F) { llmtest.Fuzz(f, openai.Adapter()) }

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, openai.Adapter()) }
