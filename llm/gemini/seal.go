package gemini

import "github.com/turnd/turnd/llm/wire"

// sealer seals the signature of a part. A call is sealed without a signature too: of several calls the vendor signs the first
// alone, and then wants the others as they came.
const sealer wire.Sealer = "gemini.generate/"

// skipSignature is what the vendor wants to see on a call that none of its models made, in place of a signature.
const skipSignature = "skip_thought_signature_validator"
