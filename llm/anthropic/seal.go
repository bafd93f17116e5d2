package anthropic

import "strings"

// sealer begins every seal of this package, so that no other vendor's is taken for one.
const sealer = "anthropic.messages/"

// seal is what is kept of a block of thinking to send it back: its signature, or what the vendor sealed it into, and the
// model that made it. A model can't be trusted with another's.
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
