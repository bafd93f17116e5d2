package turns

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"math"
	"slices"
)

// hashVersion names the canonical encoding below and stands in front of the digest, so that a later encoding can't be
// mistaken for it.
const hashVersion = "h1"

// Tags of the canonical encoding. A tag is never used twice and never changes its meaning; a field added later gets the
// next tag and, unset, writes nothing, so that it changes no older hash.
const (
	tagConversation = iota + 1
	tagParent
	tagRoot
	tagText
	tagImage
	tagDocument
	tagToolResult
	tagOtherBlock
	tagBlockEnd
	tagMediaType
	tagTitle
	tagData
	tagURL
	tagToolUseID
	tagIsError
	tagModel
	tagSystem
	tagMaxOutputTokens
	tagTemperature
	tagStopSequence
	tagTool
	tagToolDescription
	tagToolSchema
	tagToolChoiceMode
	tagToolChoiceName
	tagThinkingBudget
	tagLabel
	tagLabelValue
)

// HashInput is the identity of a normalised input: SHA-256 over a canonical encoding of its own, of the fields that are
// set, as they were sent. It does not depend on the wire's bytes, on defaults, or on what a parent left unset later
// resolves to. The result is the version's name and the digest.
func HashInput(in Input) []byte {
	w := canonical{sha256.New()}
	id := in.ConversationID()
	w.bytes(tagConversation, id.UUID[:])
	if in.ParentSet {
		if in.Parent.IsZero() {
			w.mark(tagRoot)
		} else {
			w.bytes(tagParent, in.Parent.UUID[:])
		}
	}
	w.content(in.Content)
	w.options(in.Options)
	return w.h.Sum([]byte(hashVersion))
}

// hashConversation is the identity of what a conversation is created with, normalised, made in the same way.
func hashConversation(c Conversation) []byte {
	w := canonical{sha256.New()}
	w.text(tagTitle, c.Title)
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		w.bytes(tagLabel, []byte(k))
		w.text(tagLabelValue, c.Labels[k])
	}
	w.options(c.Defaults)
	return w.h.Sum([]byte(hashVersion))
}

// canonical writes (tag, length, bytes) triples, so that no two sequences of fields write the same bytes.
type canonical struct{ h hash.Hash }

func (w canonical) bytes(tag uint64, b []byte) {
	var head [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], tag)
	n += binary.PutUvarint(head[n:], uint64(len(b)))
	w.h.Write(head[:n])
	w.h.Write(b)
}

func (w canonical) mark(tag uint64) { w.bytes(tag, nil) }

func (w canonical) text(tag uint64, s string) {
	if s != "" {
		w.bytes(tag, []byte(s))
	}
}

func (w canonical) number(tag uint64, n int64) {
	if n != 0 {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		w.bytes(tag, b[:])
	}
}

func (w canonical) content(content []Block) {
	for _, b := range content {
		switch b := b.(type) {
		case Text:
			w.bytes(tagText, []byte(b.Text))
		case Image:
			w.mark(tagImage)
			w.source(b.MediaType, "", b.Data, b.URL)
		case Document:
			w.mark(tagDocument)
			w.source(b.MediaType, b.Title, b.Data, b.URL)
		case ToolResult:
			w.mark(tagToolResult)
			w.text(tagToolUseID, b.ToolUseID)
			if b.IsError {
				w.mark(tagIsError)
			}
			w.content(b.Content)
		default:
			w.mark(tagOtherBlock)
		}
		w.mark(tagBlockEnd)
	}
}

func (w canonical) source(mediaType, title string, data []byte, url string) {
	w.text(tagMediaType, mediaType)
	w.text(tagTitle, title)
	if data != nil {
		w.bytes(tagData, data)
	}
	w.text(tagURL, url)
}

func (w canonical) options(o Options) {
	w.text(tagModel, o.Model)
	w.text(tagSystem, o.System)
	w.number(tagMaxOutputTokens, int64(o.MaxOutputTokens))
	if o.Temperature != nil {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], math.Float64bits(*o.Temperature))
		w.bytes(tagTemperature, b[:])
	}
	for _, s := range o.StopSequences {
		w.bytes(tagStopSequence, []byte(s))
	}
	for _, t := range o.Tools {
		w.bytes(tagTool, []byte(t.Name))
		w.text(tagToolDescription, t.Description)
		w.text(tagToolSchema, t.InputSchemaJSON)
	}
	if c := o.ToolChoice; c != nil {
		w.bytes(tagToolChoiceMode, []byte(c.Mode))
		w.text(tagToolChoiceName, c.ToolName)
	}
	w.number(tagThinkingBudget, int64(o.ThinkingBudgetTokens))
}
