package anthropic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
)

func FuzzEventsAreScannedAsTheyAreParsed(f *testing.F) {
	var scanned, parsed event
	llmtest.Scanned(f, llm.WireAnthropicMessages, func(data []byte) (event, bool) { ok := scanned.scan(data); return scanned, ok },
		func(data []byte) (event, error) { err := parse(data, &parsed); return parsed, err },
		cmp.AllowUnexported(refusal{}))
}
