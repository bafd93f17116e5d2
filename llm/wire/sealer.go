package wire

import (
	"encoding/json"
	"strings"
)

// Sealer begins every seal of a wire, so that no other wire's is taken for one. A seal is what is kept of a piece to send it
// back as its vendor wrote it, and the model that made it.
type Sealer string

// Seal seals data of a model.
func (s Sealer) Seal(model, data string) string { return string(s) + model + "\n" + data }

// SealSome seals data of a model if there is any; else the seal is empty.
func (s Sealer) SealSome(model, data string) string {
	if data == "" {
		return ""
	}
	return s.Seal(model, data)
}

// Open is the data that was sealed, if it is this model's.
func (s Sealer) Open(model, seal string) (data string, ok bool) {
	if data, ok = strings.CutPrefix(seal, string(s)+model+"\n"); !ok {
		return "", false
	}
	return data, true
}

// OpenAny is the data that was sealed, whichever model of the wire's it is.
func (s Sealer) OpenAny(seal string) (data string, ok bool) {
	sealed, ok := strings.CutPrefix(seal, string(s))
	if !ok {
		return "", false
	}
	_, data, ok = strings.Cut(sealed, "\n")
	return data, ok
}

// OfModel tells which seals are a model's.
func (s Sealer) OfModel(model string) func(seal string) bool {
	return func(seal string) bool { _, ok := s.Open(model, seal); return ok }
}

// IsJSON reports whether a seal is of the wire and holds JSON.
func (s Sealer) IsJSON(seal string) bool {
	data, ok := s.OpenAny(seal)
	return ok && json.Valid([]byte(data))
}
