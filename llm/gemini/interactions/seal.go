package interactions

import (
	"encoding/json"
	"strings"
)

// sealer begins every seal of this package, so that no other wire's is taken for one.
const sealer = "gemini.interactions/"

// seal is what is kept of a thought or a text: the model that made it, and the thought's signature or what the text cites.
func seal(model, signature string) string {
	if signature == "" {
		return ""
	}
	return sealer + model + "\n" + signature
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

// isOurs reports whether what a text cites is of this wire.
func isOurs(seal string) bool {
	data, ok := unsealAny(seal)
	return ok && json.Valid([]byte(data))
}

// unseal is what seal was given, if it was this model's.
func unseal(model, seal string) (signature string, ok bool) {
	return strings.CutPrefix(seal, sealer+model+"\n")
}
