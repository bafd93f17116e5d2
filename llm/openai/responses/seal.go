package responses

import (
	"encoding/json"
	"strings"

	"github.com/turnd/turnd/llm/wire"
)

// sealer begins every seal of this package, so that no other vendor's is taken for one.
const sealer = "openai.responses/"

// seal is what is kept of reasoning to send it back: what the vendor sealed it into, and the model that made it. Another
// model can't read it.
func seal(model, data string) string {
	if data == "" {
		return ""
	}
	return sealer + model + "\n" + data
}

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
	return seal(model, string(data))
}

// unsealText is what sealText was given, whichever model it was.
func unsealText(seal string) (b beside, ok bool) {
	sealed, ok := strings.CutPrefix(seal, sealer)
	if !ok {
		return b, false
	}
	_, data, ok := strings.Cut(sealed, "\n")
	return b, ok && json.Unmarshal([]byte(data), &b) == nil
}

// isOurs reports whether a text or a refusal is one of this wire.
func isOurs(seal string) bool { _, ok := unsealText(seal); return ok }

// unseal is what seal was given, if it was this model's.
func unseal(model, seal string) (data string, ok bool) {
	return strings.CutPrefix(seal, sealer+model+"\n")
}
