package wire

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a credential. It prints, logs and marshals as a mark, whatever the verb; only Reveal gives it out.
type Secret string

// Reveal is the credential itself, for a request's header and nothing else.
func (s Secret) Reveal() string { return string(s) }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.mark()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.mark()) }

// MarshalText implements encoding.TextMarshaler, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.mark()), nil }

func (s Secret) mark() string {
	if s == "" {
		return ""
	}
	return redacted
}
