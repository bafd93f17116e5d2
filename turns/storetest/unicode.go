package storetest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func unicodes() []promise {
	return []promise{
		{"text of every script comes back to the byte", textComesBack},
		{"ids compare by bytes, not by a collation", idsCompareByBytes},
		{"names that differ in case or form are different", namesDifferInCase},
	}
}

// texts are hard in some way for one engine or another: combining forms that a collation calls equal, runes beyond the
// first plane, joiners, right-to-left marks, quotes, escapes, the last code points, and the replacement for what was NUL.
var texts = []string{
	"👩‍👩‍👧‍👦 family", "שלום \u200fעולם\u200e", "مرحبا\u202eabc\u202c", "e\u0301 é", "ß ẞ ı İ",
	`quote ' " \ \u0000 $1 ?1 @x :y %s`, "\t\r\n\u0085\u2028", "\U0010ffff\ufffe\uffff", "\ufffd", "\x01\x1f\x7f", "<&>",
	strings.Repeat("语", 5000),
}

func textComesBack(t *testing.T, w *world) {
	for _, text := range texts {
		c := newConversation()
		claim := w.first(c)
		claim.Subject = text
		claim.NewTurn.Content = []turns.Block{turns.Text{Text: text}, turns.ToolUse{ID: "t", Name: "f", InputJSON: text}}
		claim.NewTurn.Options = turns.Options{System: text, StopSequences: []string{text}}
		w.win(claim)
		length := w.append(fenceOf(claim), 0, opening(text))
		sameLog(t, []turns.Piece{opening(text)}, w.read(c, claim.Reply.ID).Content)
		w.finish(completing(claim, length, whole(text)))
		require.Equal(t, text, w.read(c, claim.Reply.ID).Content[0].Text)
		turn := w.lookup(c, claim.Turn).Turn
		equal(t, claim.NewTurn.Content, turn.Content)
		equal(t, claim.NewTurn.Options, turn.Options)
		require.Equal(t, text, w.conversation(c).Subject)
		titled := w.made(newConversation())
		titled.Title, titled.Labels = text, map[string]string{text: text}
		require.Equal(t, titled.Labels, w.create(titled).Labels)
		require.Equal(t, text, w.conversation(conversation{key: titled.Key}).Title)
	}
}

func idsCompareByBytes(t *testing.T, w *world) {
	var keys []turns.ConversationKey
	for _, first := range []byte{0x00, 0x0a, 0x41, 0x61, 0x7f, 0x80, 0xff} {
		made := w.made(newConversation())
		made.Key[0] = first
		w.create(made)
		keys = append(keys, made.Key)
	}
	w.exec("UPDATE conversations SET update_time = (SELECT min(update_time) FROM conversations)")
	slices.SortFunc(keys, func(a, b turns.ConversationKey) int { return bytes.Compare(b[:], a[:]) })
	require.Equal(t, keys, keysOf(w.list(turns.ConversationQuery{})))
}

func namesDifferInCase(t *testing.T, w *world) {
	id := uuid.New()
	for _, tenant := range []turns.Tenant{"a", "A", "á", "a\u0301", "a "} {
		made := w.made(conversationOf(tenant, id))
		made.Subject = string(tenant)
		w.create(made)
		require.Len(t, w.list(turns.ConversationQuery{Tenant: tenant, Subject: string(tenant)}), 1)
		require.Empty(t, w.list(turns.ConversationQuery{Tenant: tenant, Subject: "b"}))
	}
}
