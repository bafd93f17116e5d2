package responses_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAdapterKeepsThePromisesOfAllAdapters(t *testing.T) { llmtest.Run(t, responses.Adapter()) }

func FuzzACallKeepsItsPromisesWhateverIsStreamed(f *testing.F) { llmtest.Fuzz(f, responses.Adapter()) }

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, responses.Adapter()) }
