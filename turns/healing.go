package turns

// Healing names what was put right in a history on its way out to a provider. What is stored stays as it was. The set is
// closed: it is a label of a metric.
type Healing string

// The kinds of healing.
const (
	// HealedBlank is blank text that was left out, HealedText text with NUL or half a surrogate pair that was made whole.
	HealedBlank Healing = "blank_text"
	HealedText  Healing = "broken_text"
	// HealedInput is the input of a call that is no JSON object, HealedName the name of a tool and HealedID the id of a call
	// in a form that not all vendors take, or an id that another call has already.
	HealedInput Healing = "tool_input"
	HealedName  Healing = "tool_name"
	HealedID    Healing = "call_id"
	// HealedDuplicate is a second call under an id of the same message, HealedOrphan a result that answers no call of the
	// message before it, HealedUnanswered a call that nobody answered.
	HealedDuplicate  Healing = "duplicate_call"
	HealedOrphan     Healing = "orphan_result"
	HealedUnanswered Healing = "unanswered_call"
	// HealedRoles are neighbours of one role that became one message, HealedEmpty a message of which nothing was left.
	HealedRoles Healing = "merged_roles"
	HealedEmpty Healing = "empty_message"
	// HealedReasoning are thoughts, and HealedOpaque other pieces, that only another vendor or model understands.
	HealedReasoning Healing = "foreign_reasoning"
	HealedOpaque    Healing = "foreign_opaque"
	// HealedMedia is an image or a document that the endpoint does not take, or for which the request had no room.
	HealedMedia Healing = "media_left_out"
	// HealedUnreadable is a stored row that does not decode, which was left out.
	HealedUnreadable Healing = "unreadable_row"
)

// Healings are all kinds, in a fixed order.
func Healings() []Healing {
	return []Healing{HealedBlank, HealedText, HealedInput, HealedName, HealedID, HealedDuplicate, HealedOrphan,
		HealedUnanswered, HealedRoles, HealedEmpty, HealedReasoning, HealedOpaque, HealedMedia, HealedUnreadable}
}

// Healed counts what was put right in one history, by kind. The zero value can be read; Count needs a map.
type Healed map[Healing]int

// Count adds one of a kind. On a nil map it does nothing: nobody asked.
func (h Healed) Count(kind Healing) {
	if h != nil {
		h[kind]++
	}
}
