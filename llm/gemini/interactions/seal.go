package interactions

import "github.com/turnd/turnd/llm/wire"

// sealer seals the signature of a thought, and what a text cites.
const sealer wire.Sealer = "gemini.interactions/"
