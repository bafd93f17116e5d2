package turns

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// The ids of turnd are UUIDs of any version. Each kind has a type of its own, so that one can't be passed for another;
// the zero value of each means "none".
type (
	// ConversationID names a conversation within its tenant.
	ConversationID struct{ uuid.UUID }
	// TurnID names a user turn. The client mints it before the first send and sends it again with every retry: it is
	// the identity of the whole unit of work.
	TurnID struct{ uuid.UUID }
	// ReplyID names one attempt to answer a user turn.
	ReplyID struct{ uuid.UUID }
	// RowID names a user turn or a reply, where a place in the tree may be either.
	RowID struct{ uuid.UUID }
	// CallID names one physical request to a provider.
	CallID struct{ uuid.UUID }
	// WorkerID names one process life: it is new at each start, so that a restarted worker can't be taken for the one
	// that died. The configured name of a worker is only a label.
	WorkerID struct{ uuid.UUID }
)

// IsZero reports whether the id is unset.
func (id ConversationID) IsZero() bool { return id.UUID == uuid.Nil }

// IsZero reports whether the id is unset.
func (id TurnID) IsZero() bool { return id.UUID == uuid.Nil }

// IsZero reports whether the id is unset.
func (id ReplyID) IsZero() bool { return id.UUID == uuid.Nil }

// IsZero reports whether the id is unset.
func (id RowID) IsZero() bool { return id.UUID == uuid.Nil }

// IsZero reports whether the id is unset.
func (id WorkerID) IsZero() bool { return id.UUID == uuid.Nil }

// Row is the user turn's place in the tree.
func (id TurnID) Row() RowID { return RowID(id) }

// Row is the reply's place in the tree.
func (id ReplyID) Row() RowID { return RowID(id) }

// Tenant is the owner of conversations. Every query carries it, folded into the ConversationKey.
type Tenant string

// DefaultTenant is that of callers who name none.
const DefaultTenant Tenant = "default"

// Caller is who makes a request.
type Caller struct {
	// Tenant owns what the caller sees; ids of other tenants answer exactly as missing ones.
	Tenant Tenant
	// Subject is the person or service within the tenant.
	Subject string
}

// ConversationKey is the stored key of a conversation: the first 16 bytes of SHA-256 over tenant and conversation id.
// Every table leads with it. Another tenant's id makes another key, so it misses by construction and there is no check
// that could be forgotten.
type ConversationKey [16]byte

// KeyOf derives the stored key. The tenant's length goes in front, so that no pair of tenant and id can be read as
// another.
func KeyOf(tenant Tenant, id ConversationID) ConversationKey {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(tenant)))
	h.Write(n[:])
	h.Write([]byte(tenant))
	h.Write(id.UUID[:])
	var key ConversationKey
	copy(key[:], h.Sum(nil))
	return key
}

// String is the key as a UUID's text, for logs and file names.
func (k ConversationKey) String() string { return uuid.UUID(k).String() }

// conversationNamespace is the UUIDv5 namespace of conversations that a first turn makes.
var conversationNamespace = uuid.MustParse("6f2b7c1e-2f0e-5d53-9a2f-6f3b3c7d9e10")

// DeriveConversation names the conversation of a turn that was sent without one. It depends on the turn alone, so that
// a repeat of the turn lands in the same new conversation.
func DeriveConversation(turn TurnID) ConversationID {
	return ConversationID{uuid.NewSHA1(conversationNamespace, turn.UUID[:])}
}

// newID mints an id that sorts by time (UUIDv7), which keeps index inserts local.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
