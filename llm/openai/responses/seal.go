package responses

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/wire"
)

// sealer seals what the vendor sealed reasoning into, which another model can't read, and what is beside a text.
const sealer wire.Sealer = "openai.responses/"

// beside is what is kept of a text or a refusal besides its words: what it cites, as the vendor wrote it, and which part of
// the answer it is.
type beside struct {
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Phase       string          `json:"phase,omitempty"`
}

// sealText seals what is beside the words of a text; nothing is not sealed. A refusal is sealed in any case: the seal says
// that it is one of this vendor's.
func sealText(model string, b beside, refusal bool) string {
	if b.Annotations == nil && b.Phase == "" && !refusal {
		return ""
	}
	data, _ := wire.Encode(b) // strings and JSON always can be
	return sealer.Seal(model, string(data))
}

// unsealText is what sealText was given, whichever model it was.
func unsealText(seal string) (b beside, ok bool) {
	data, ok := sealer.OpenAny(seal)
	return b, ok && json.Unmarshal([]byte(data), &b) == nil
}

// isOurs reports whether a text or a refusal is one of this wire.
func isOurs(seal string) bool { _, ok := unsealText(seal); return ok }
