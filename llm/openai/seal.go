package openai

import (
	"strings"

	"github.com/turnd/turnd/llm/wire"
)

// sealer marks a refusal as one of this wire, by the model that made it.
const sealer wire.Sealer = "openai.chat/"

// isOurs reports whether a seal is of this wire.
func isOurs(seal string) bool { return strings.HasPrefix(seal, string(sealer)) }
