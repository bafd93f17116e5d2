package responses

import "strings"

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

// unseal is what seal was given, if it was this model's.
func unseal(model, seal string) (data string, ok bool) {
	return strings.CutPrefix(seal, sealer+model+"\n")
}
