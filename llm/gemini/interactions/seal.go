package interactions

import "strings"

// sealer begins every seal of this package, so that no other wire's is taken for one.
const sealer = "gemini.interactions/"

// seal is what is kept of a thought: the model that had it, and its signature.
func seal(model, signature string) string {
	if signature == "" {
		return ""
	}
	return sealer + model + "\n" + signature
}

// unseal is what seal was given, if it was this model's.
func unseal(model, seal string) (signature string, ok bool) {
	return strings.CutPrefix(seal, sealer+model+"\n")
}
