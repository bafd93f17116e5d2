package responses

import (
	"strings"

	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// rules are the vendor's, and what only responses fail of: policies, and files that can't be read.
var rules = func() wire.Rules {
	r := openai.Rules()
	for _, code := range []string{
		"invalid_prompt", "bio_policy", "cyber_policy", "misalignment_policy_violation", "content_policy_violation", codeCancelled,
	} {
		r.Codes[code] = turns.ClassTerminal
	}
	return r
}()

// codeCancelled is the code of a response that somebody stopped. The vendor has only a status for it.
const codeCancelled = "cancelled"

func classify(a wire.Answer) wire.Verdict {
	said := openai.ReadError(a.Body)
	return wire.Verdict{Class: rules.Answer(a.Status, said, a.Hinted), Word: said.Word()}
}

// failure is what the code of a response that failed means. It did fail, so a code that no table knows is no unknown
// outcome.
func failure(code string) wire.Verdict {
	v := wire.Verdict{Class: rules.Event(wire.Said{Own: true, Code: code}), Word: code}
	switch {
	case strings.Contains(code, "image"):
		v.Class = turns.ClassTerminal
	case v.Class == turns.ClassAmbiguous:
		v.Class = turns.ClassTransient
	}
	return v
}
