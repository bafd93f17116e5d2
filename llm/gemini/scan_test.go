package gemini

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
)

func FuzzEventsAreScannedAsTheyAreParsed(f *testing.F) {
	var scanned chunk
	llmtest.Scanned(f, llm.WireGeminiGenerate, func(data []byte) (chunk, bool) { ok := scanned.scan(data, "r_1"); return scanned, ok },
		func(data []byte) (parsed chunk, err error) { err = json.Unmarshal(data, &parsed); return parsed, err },
		cmp.AllowUnexported(Failure{}))
}
