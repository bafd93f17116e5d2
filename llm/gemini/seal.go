package gemini

import "strings"

// sealer begins every seal of this package, so that no other vendor's is taken for one.
const sealer = "gemini.generate/"

// skipSignature is what the vendor wants to see on a call that none of its models made, in place of a signature.
const skipSignature = "skip_thought_signature_validator"

// seal is what is kept of a part: the model that made it, and its signature. A call is sealed without a signature too: of
// several calls the vendor signs the first alone, and then wants the others as they came.
func seal(model, signature string) string { return sealer + model + "\n" + signature }

// unseal is the signature, if this model made the part.
func unseal(model, seal string) (signature string, ok bool) {
	if signature, ok = strings.CutPrefix(seal, sealer+model+"\n"); !ok {
		return "", false
	}
	return signature, true
}
