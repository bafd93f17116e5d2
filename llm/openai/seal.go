package openai

import "strings"

// sealer begins every seal of this package, so that no other wire's is taken for one.
const sealer = "openai.chat/"

// seal marks a refusal as one of this wire, by the model that made it.
func seal(model string) string { return sealer + model + "\n" }

// isOurs reports whether a seal is of this wire.
func isOurs(seal string) bool { return strings.HasPrefix(seal, sealer) }
