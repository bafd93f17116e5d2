package llm

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Wire is the protocol of an endpoint.
type Wire string

// The wires.
const (
	WireAnthropicMessages  Wire = "anthropic.messages"
	WireOpenAIChat         Wire = "openai.chat"
	WireOpenAIResponses    Wire = "openai.responses"
	WireGeminiGenerate     Wire = "gemini.generate"
	WireGeminiInteractions Wire = "gemini.interactions"
)

// Dialect says which names an endpoint of WireOpenAIChat knows: the vendor renamed some that compatible servers kept.
type Dialect string

// The dialects. Empty decides by the host of the base URL.
const (
	DialectVendor     Dialect = "openai"
	DialectCompatible Dialect = "compatible"
)

// Secret is a key; it shows as a mark wherever it is printed.
type Secret = wire.Secret

// Config says which models there are and who serves them.
type Config struct {
	// DefaultModel answers for turns that name none. It may be empty if there is one model only.
	DefaultModel string
	Endpoints    []Endpoint
	Models       []Model
}

// Endpoint is a place where models are served, with one credential.
type Endpoint struct {
	Name string
	Wire Wire
	// BaseURL is the vendor's own if empty.
	BaseURL string
	// Key may be empty only for an endpoint on loopback.
	Key Secret
	// Dialect is for WireOpenAIChat alone; empty decides by the host.
	Dialect Dialect
	// Limits hold where they are set; the others are the process's defaults.
	Limits       turns.Limits
	Capabilities turns.Capabilities
	// KeyScope and DisconnectStops complete Capabilities: where an idempotency key is unique, and whether the provider
	// stops generating when its client is gone.
	KeyScope        string
	DisconnectStops string
	// WebhookSecret verifies what the vendor calls back; empty takes no such calls.
	WebhookSecret Secret
	// OnAmbiguous and OnPartial are policies; empty is the process's default.
	OnAmbiguous turns.OnAmbiguous
	OnPartial   turns.OnPartial
	Prices      Prices
}

// Prices are for a million tokens, in the currency the operator keeps books in. Zeros are no price.
type Prices = turns.Prices

// Model is a name that clients use, and who is asked for it, the first first.
type Model struct {
	Name  string
	Route []Target
}

// Target is a vendor's model at an endpoint.
type Target struct{ Endpoint, Model string }

// LogValue implements slog.LogValuer: names and places, no key.
func (c Config) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("default_model", c.DefaultModel)}
	for _, m := range c.Models {
		for _, t := range m.Route {
			attrs = append(attrs, slog.String("model."+m.Name, t.Endpoint+"/"+t.Model))
		}
	}
	for _, e := range c.Endpoints {
		attrs = append(attrs, slog.Any("endpoint."+e.Name, e))
	}
	return slog.GroupValue(attrs...)
}

// LogValue implements slog.LogValuer. It says whether there is a key, and not which.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("wire", string(e.Wire)), slog.String("base_url", e.BaseURL), slog.Any("key", e.Key))
}

// Problem is one thing that is wrong with a Config.
type Problem struct {
	// Path names the entry as the models file has it, such as "endpoints.local.wire". Line is its line there; 0 if the
	// Config did not come from a file.
	Path string
	Line int
	// Text says what is wrong and what to do.
	Text string
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Line > 0 {
		return fmt.Sprintf("line %d: %s: %s", p.Line, p.Path, p.Text)
	}
	return fmt.Sprintf("%s: %s", p.Path, p.Text)
}

// Problems are those that an error of Load, New or Replace is about. It may hold others besides, such as a file that is no
// YAML, and may have none at all.
func Problems(err error) []*Problem {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []*Problem
		for _, e := range joined.Unwrap() {
			all = append(all, Problems(e)...)
		}
		return all
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return nil
}
