package anthropic

import (
	"encoding/json"
	"strings"
)

// sealer begins every seal of this package, so that no other vendor's is taken for one.
const sealer = "anthropic.messages/"

// seal is what is kept of a block to send it back, and the model that made it. Of thinking that is its signature, or what the
// vendor sealed it into: a model can't be trusted with another's. Of a block that is not read it is the block itself, of text the
// list of what it cites.
func seal(model, data string) string {
	if data == "" {
		return ""
	}
	return sealer + model + "\n" + data
}

// unseal is what seal was given, if it was this model's.
func unseal(model, seal string) (data string, ok bool) {
	return strings.CutPrefix(seal, sealer+model+"\n")
}

// unsealAny is what seal was given, whichever model it was.
func unsealAny(seal string) (data string, ok bool) {
	sealed, ok := strings.CutPrefix(seal, sealer)
	if !ok {
		return "", false
	}
	_, data, ok = strings.Cut(sealed, "\n")
	return data, ok
}

// isOurs reports whether a text, or a block that is not read, came from this vendor.
func isOurs(seal string) bool {
	data, ok := unsealAny(seal)
	return ok && json.Valid([]byte(data))
}
