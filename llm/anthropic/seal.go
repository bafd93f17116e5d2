package anthropic

import "github.com/turnd/turnd/llm/wire"

// sealer seals what goes back to the vendor. Of thinking that is its signature, or what the vendor sealed it into: a model
// can't be trusted with another's. Of a block that is not read it is the block itself, of text the list of what it cites.
const sealer wire.Sealer = "anthropic.messages/"
