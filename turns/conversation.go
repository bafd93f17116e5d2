package turns

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"time"
)

// Bounds of a conversation's labels, those of a key and a value in bytes. The server holds its clients to them, and an import
// its file.
const (
	MaxLabels     = 32
	MaxLabelKey   = 64
	MaxLabelValue = 256
)

// CreateConversation makes a conversation. A zero id is minted. The id again with the title, defaults and labels that
// it was created with answers with what is stored, updates and all; with other ones it is CodeConversationUsed. Defaults that name a model must suit it.
func (s *Service) CreateConversation(ctx context.Context, caller Caller, c Conversation) (Conversation, error) {
	if c.ID.IsZero() {
		c.ID = ConversationID{newID()}
	}
	c.Key, c.Tenant, c.Subject = KeyOf(caller.Tenant, c.ID), caller.Tenant, caller.Subject
	if err := c.normalise(); err != nil {
		return Conversation{}, err
	}
	c.CreateHash = hashConversation(c)
	if err := s.checkDefaults(c.Defaults); err != nil {
		return s.createdBefore(ctx, c, err)
	}
	stored, created, err := s.store.CreateConversation(ctx, c)
	switch {
	case err != nil:
		return Conversation{}, err
	case stored.Deleted:
		return Conversation{}, ConversationDeleted()
	case !created && !repeats(stored, c):
		return Conversation{}, &Error{Code: CodeConversationUsed, Field: "conversation.conversation_id",
			Problem: "is known with other fields; make another under a new id"}
	}
	return stored, nil
}

// createdBefore answers for a conversation that would be refused now: a repeat of one that was not when it was made succeeds
// like any other, whatever models are configured since.
func (s *Service) createdBefore(ctx context.Context, c Conversation, refused error) (Conversation, error) {
	if CodeOf(refused) != CodeUnknownModel && CodeOf(refused) != CodeInvalidField {
		return Conversation{}, refused
	}
	stored, err := s.store.ReadConversation(ctx, c.Key)
	if err == nil && !stored.Deleted && repeats(stored, c) {
		return stored, nil
	}
	return Conversation{}, refused
}

const defaultsField = "conversation.defaults"

// MaxDefaults bounds a conversation's defaults as they are stored, in bytes, so that a page of conversations is bounded.
const MaxDefaults = 64 << 10

// normalise brings fields into the form that is stored.
func (c *Conversation) normalise() error {
	c.Title, c.Defaults = dropNUL(c.Title), c.Defaults.normalise()
	labels := make(map[string]string, len(c.Labels))
	for k, v := range c.Labels {
		labels[dropNUL(k)] = dropNUL(v)
	}
	c.Labels = labels
	defaults, err := EncodeOptions(c.Defaults)
	if err != nil {
		return err
	}
	if len(defaults) > MaxDefaults {
		return &Error{Code: CodeContentTooLarge, Field: defaultsField,
			Problem: fmt.Sprintf("is %d bytes and the limit is %d; send long instructions with the turn", len(defaults), MaxDefaults),
			Meta:    map[string]string{"size": fmt.Sprint(len(defaults)), "limit": fmt.Sprint(MaxDefaults)}}
	}
	return nil
}

// repeats reports whether c is a repeat of what made a stored conversation, whatever was updated since. Where that is not
// known, it is one if the two are the same now.
func repeats(stored, c Conversation) bool {
	if stored.CreateHash != nil {
		return bytes.Equal(stored.CreateHash, c.CreateHash)
	}
	return stored.Title == c.Title && reflect.DeepEqual(stored.Defaults, c.Defaults) && maps.Equal(stored.Labels, c.Labels)
}

// GetConversation reads one.
func (s *Service) GetConversation(ctx context.Context, caller Caller, id ConversationID) (Conversation, error) {
	c, err := s.store.ReadConversation(ctx, KeyOf(caller.Tenant, id))
	if err == nil && c.Deleted {
		return Conversation{}, ConversationDeleted()
	}
	return c, err
}

// labelLook is how many conversations are looked at for one page of those with labels. Labels have no index: it would have
// to be kept with every change of a conversation, and few lists ask for labels.
const labelLook = 1000

// ListConversations reads the caller's conversations that have all of the labels, last used first. A page of few, or none,
// still has a token if there are more to look at.
func (s *Service) ListConversations(ctx context.Context, caller Caller, labels map[string]string, size int, token string) ([]Conversation, string, error) {
	size, err := pageSize(size)
	if err != nil {
		return nil, "", err
	}
	q := ConversationQuery{Tenant: caller.Tenant, Subject: caller.Subject, Labels: labels, Limit: size + 1, Look: size + 1}
	if len(labels) > 0 {
		q.Look = labelLook
	}
	if token != "" {
		if q.BeforeTime, q.BeforeKey, err = parseConversationToken(token); err != nil {
			return nil, "", err
		}
	}
	page, err := s.store.ListConversations(ctx, q)
	switch {
	case err != nil:
		return nil, "", err
	case len(page.Found) > size:
		return page.Found[:size], conversationToken(page.Found[size-1]), nil
	case page.Reached != nil:
		return page.Found, conversationToken(*page.Reached), nil
	}
	return page.Found, "", nil
}

// PageOf makes a page of rows in their order: of those that have the labels of the query, and of the last that was to be
// looked at, by its key.
func PageOf(q ConversationQuery, rows []Conversation, last ConversationKey) (page ConversationPage) {
	for i, c := range rows {
		if haveLabels(c.Labels, q.Labels) {
			page.Found = append(page.Found, c)
		}
		if c.Key == last && len(page.Found) < q.Limit {
			page.Reached = &rows[i]
		}
	}
	return page
}

// haveLabels reports whether wanted ones, if any, are among labels.
func haveLabels(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if has, ok := labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

func conversationToken(c Conversation) string {
	b := binary.BigEndian.AppendUint64([]byte{1}, uint64(c.UpdateTime.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(b, c.Key[:]...))
}

func parseConversationToken(token string) (time.Time, ConversationKey, error) {
	var key ConversationKey
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) != 9+len(key) || b[0] != 1 {
		return time.Time{}, key, invalid("page_token", "is not one that a page gave; start again without it")
	}
	copy(key[:], b[9:])
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:9]))), key, nil
}

// ConversationUpdate says what to change; nil and unset fields stay.
type ConversationUpdate struct {
	ID        ConversationID
	Title     *string
	Defaults  *Options
	Labels    map[string]string
	SetLabels bool
	// ExpectVersion, if not 0, is the version that must be stored now.
	ExpectVersion int64
}

// UpdateConversation changes fields. Turns already made keep what they were made from.
func (s *Service) UpdateConversation(ctx context.Context, caller Caller, u ConversationUpdate) (Conversation, error) {
	key := KeyOf(caller.Tenant, u.ID)
	if u.Defaults != nil {
		if err := s.checkDefaults(u.Defaults.normalise()); err != nil {
			return Conversation{}, err
		}
	}
	for range submitRounds {
		c, err := s.store.ReadConversation(ctx, key)
		if err != nil {
			return Conversation{}, err
		}
		if c.Deleted {
			return Conversation{}, ConversationDeleted()
		}
		if u.ExpectVersion != 0 && u.ExpectVersion != c.Version {
			return Conversation{}, &Error{Code: CodeConflict, Field: "expected_version", Final: true,
				Problem: "the conversation has another version by now; read it again, and send the change with that one"}
		}
		before := c
		u.apply(&c)
		if err := c.normalise(); err != nil {
			return Conversation{}, err
		}
		if !reflect.DeepEqual(c.Defaults, before.Defaults) {
			c.DefaultsVersion = before.DefaultsVersion + 1
		}
		updated, err := s.store.UpdateConversation(ctx, c, before.Version)
		if err != nil {
			return Conversation{}, err
		}
		if updated {
			return s.store.ReadConversation(ctx, key)
		}
	}
	return Conversation{}, &Error{Code: CodeConflict,
		Problem: "lost a race several times over; send the same request again", RetryAfter: 100 * time.Millisecond}
}

func (u ConversationUpdate) apply(c *Conversation) {
	if u.Title != nil {
		c.Title = *u.Title
	}
	if u.Defaults != nil {
		c.Defaults = *u.Defaults
	}
	if u.SetLabels {
		c.Labels = u.Labels
	}
}
