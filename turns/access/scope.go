package access

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is a set of methods that a caller may use. A scope implies no other.
type Scope string

// The scopes.
const (
	// ScopeTurns is for those who send turns and steer their replies and conversations.
	ScopeTurns Scope = "turns"
	// ScopeRead is for those who read turns, replies and conversations, and follow replies.
	ScopeRead Scope = "read"
	// ScopeOperator is for those who run turnd.
	ScopeOperator Scope = "operator"
)

// Scopes are all there are.
func Scopes() []Scope { return []Scope{ScopeTurns, ScopeRead, ScopeOperator} }

// ParseScopes reads names of scopes with commas or blanks between them, drops repeats, and fails for an unknown one or none.
func ParseScopes(text string) ([]Scope, error) {
	var scopes []Scope
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		scope := Scope(name)
		if !slices.Contains(Scopes(), scope) {
			return nil, fmt.Errorf("unknown scope %q; scopes are turns, read and operator", name)
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	if len(scopes) == 0 {
		return nil, fmt.Errorf("no scope; scopes are turns, read and operator")
	}
	return scopes, nil
}

// FormatScopes writes scopes with commas between them, as they are kept.
func FormatScopes(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

// StoredScopes reads what FormatScopes wrote. A name that this build does not know stays, and lets nobody in.
func StoredScopes(text string) []Scope {
	var scopes []Scope
	for name := range strings.SplitSeq(text, ",") {
		scopes = append(scopes, Scope(name))
	}
	return scopes
}
