package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds in bytes.
const (
	// MaxIdentity bounds the name of a tenant and of a subject.
	MaxIdentity = 128
	// MaxName bounds a key's label.
	MaxName = 200
)

// CheckIdentity says what is wrong with a text as the name of a tenant or subject. Blanks around a name would make two that
// look alike, and the wire takes them off headers.
func CheckIdentity(name string) error {
	if n := len(name); n == 0 || n > MaxIdentity || !printable(name) {
		return fmt.Errorf("must be 1 to %d printable ASCII characters", MaxIdentity)
	}
	if strings.TrimSpace(name) != name {
		return fmt.Errorf("must have no blanks before or behind it")
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// CheckName says what is wrong with a text as a key's label. Control characters and those that turn the writing's direction
// could make a list show something else than what is kept.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("must be at most %d bytes", MaxName)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("must be UTF-8")
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("must be printable: it has the character %U", r)
		}
	}
	return nil
}

// Check says what is wrong with a key that is to be kept.
func (k Key) Check() error {
	if !IsID(k.ID) || len(k.Hash) != 32 {
		return fmt.Errorf("key: no id or hash")
	}
	for _, part := range []struct {
		name string
		err  error
	}{{"tenant", CheckIdentity(k.Tenant)}, {"subject", CheckIdentity(k.Subject)}, {"name", CheckName(k.Name)}} {
		if part.err != nil {
			return fmt.Errorf("%s: %w", part.name, part.err)
		}
	}
	_, err := ParseScopes(FormatScopes(k.Scopes))
	return err
}
