package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
)

func FuzzEventsAreScannedAsTheyAreParsed(f *testing.F) {
	var scanned chunk
	llmtest.Scanned(f, llm.WireOpenAIChat, func(data []byte) (chunk, bool) { ok := scanned.scan(data, "chatcmpl-1"); return scanned, ok },
		func(data []byte) (parsed chunk, err error) { err = json.Unmarshal(data, &parsed); return parsed, err },
		cmp.AllowUnexported(looseText{}, argumentsText{}, errorMessage{}))
}
