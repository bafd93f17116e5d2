package llm

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Wire is the protocol of an endpoint.
type Wire string

// The wires that are spoken.
const (
	WireAnthropicMessages  Wire = "anthropic.messages"
	WireOpenAIChat         Wire = "openai.chat"
	WireOpenAIResponses    Wire = "openai.responses"
	WireGeminiGenerate     Wire = "gemini.generate"
	WireGeminiInteractions Wire = "gemini.interactions"
)

// plannedWires are names that a models file may use one day; they get a clearer refusal than a misspelt one.
var plannedWires = []Wire{WireOpenAIResponses, WireGeminiGenerate, WireGeminiInteractions}

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
	// OnAmbiguous and OnPartial are policies; empty is the process's default.
	OnAmbiguous string
	OnPartial   string
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

// LogValue implements slog.LogValuer. It says whether there is a key, not which.
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

// Validate joins all problems of a Config; each is a *Problem.
func (c Config) Validate() error {
	var problems []error
	report := func(path, format string, args ...any) {
		problems = append(problems, &Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	for i, e := range c.Endpoints {
		if slices.ContainsFunc(c.Endpoints[:i], func(o Endpoint) bool { return o.Name == e.Name }) {
			report("endpoints."+e.Name, "named twice")
		}
		e.check(report)
	}
	c.checkModels(report)
	return errors.Join(problems...)
}

// reporter takes a problem with the entry at a path.
type reporter func(path, format string, args ...any)

func (e Endpoint) check(report reporter) {
	path := "endpoints." + e.Name
	switch {
	case e.Wire == WireAnthropicMessages || e.Wire == WireOpenAIChat:
	case slices.Contains(plannedWires, e.Wire):
		report(path+".wire", "%s is not spoken yet; use %s or %s", e.Wire, WireAnthropicMessages, WireOpenAIChat)
	default:
		report(path+".wire", "unknown wire; use %s or %s", WireAnthropicMessages, WireOpenAIChat)
	}
	if e.Dialect != "" && (e.Wire != WireOpenAIChat || !oneOf(e.Dialect, DialectVendor, DialectCompatible)) {
		report(path+".dialect", "only for %s: %s or %s", WireOpenAIChat, DialectVendor, DialectCompatible)
	}
	e.checkAddress(path, report)
	e.checkChoices(path, report)
	e.checkNumbers(path, report)
}

// checkAddress checks where an endpoint is, and that a key goes with it. A user or query in the URL is refused because
// credentials hide there, and a URL is logged.
func (e Endpoint) checkAddress(path string, report reporter) {
	loopback := false
	if e.BaseURL != "" {
		u, err := url.Parse(e.BaseURL)
		switch {
		case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
			report(path+".base_url", "not an http or https URL")
			return
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			report(path+".base_url", "holds a user, query or fragment; give only scheme, host and path")
			return
		}
		loopback = isLoopback(u.Hostname())
	}
	switch {
	case e.Key == "" && !loopback:
		report(path+".key", "missing; only an endpoint on loopback may have none")
	case strings.ContainsFunc(e.Key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
		report(path+".key", "holds a character that no key has, such as a space or a line end")
	}
}

func (e Endpoint) checkChoices(path string, report reporter) {
	for _, c := range []struct {
		key, value string
		allowed    []string
	}{
		{"capabilities.idempotency", string(e.Capabilities.Idempotency), []string{"none", "advisory", "enforced"}},
		{"capabilities.disconnect_stops", e.DisconnectStops, []string{"yes", "no", "unknown"}},
		{"on_ambiguous", e.OnAmbiguous, []string{"abandon", "retry", "hold"}},
		{"on_partial", e.OnPartial, []string{"discard", "continue"}},
	} {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			report(path+"."+c.key, "unknown; use one of %s", strings.Join(c.allowed, ", "))
		}
	}
	// A policy that is not kept must not be taken: its operator would count on it.
	if e.OnAmbiguous == "retry" || e.OnAmbiguous == "hold" {
		report(path+".on_ambiguous", "not served so far; leave it out or use abandon")
	}
	if e.OnPartial == "continue" {
		report(path+".on_partial", "not served so far; leave it out or use discard")
	}
}

func (e Endpoint) checkNumbers(path string, report reporter) {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"limits.first_byte", e.Limits.FirstByte}, {"limits.idle", e.Limits.Idle}, {"limits.total", e.Limits.Total},
		{"capabilities.retention", e.Capabilities.Retention},
	} {
		if d.value < 0 {
			report(path+"."+d.key, "negative")
		}
	}
	for _, n := range []struct {
		key   string
		value float64
	}{
		{"limits.window_tokens", float64(e.Limits.WindowTokens)},
		{"limits.max_output_tokens", float64(e.Limits.MaxOutputTokens)},
		{"prices.input", e.Prices.Input}, {"prices.output", e.Prices.Output},
		{"prices.cache_read", e.Prices.CacheRead}, {"prices.cache_write", e.Prices.CacheWrite},
	} {
		if !(n.value >= 0 && n.value < 1e12) {
			report(path+"."+n.key, "not a number of 0 or more")
		}
	}
}

func (c Config) checkModels(report reporter) {
	if len(c.Models) == 0 {
		report("models", "none; name at least one")
	}
	for i, m := range c.Models {
		path := "models." + m.Name
		if m.Name == "" || slices.ContainsFunc(c.Models[:i], func(o Model) bool { return o.Name == m.Name }) {
			report(path, "empty, or named twice")
		}
		c.checkRoute(path+".route", m.Route, report)
	}
	switch {
	case c.DefaultModel == "" && len(c.Models) > 1:
		report("default_model", "missing; with more than one model, say which answers for turns that name none")
	case c.DefaultModel != "" && !slices.ContainsFunc(c.Models, func(m Model) bool { return m.Name == c.DefaultModel }):
		report("default_model", "no model of that name")
	}
}

// checkRoute checks one model's route. More entries than one are read and refused: to ignore them would look like a
// fallback that is not there.
func (c Config) checkRoute(path string, route []Target, report reporter) {
	if len(route) == 0 {
		report(path, "empty; name an endpoint and its model")
	}
	if len(route) > 1 {
		report(path, "has %d entries; nothing falls back to a second one yet, so keep one", len(route))
	}
	for _, t := range route {
		if t.Model == "" {
			report(path+".model", "missing; give the name that the provider knows")
		}
		if !slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return e.Name == t.Endpoint }) {
			report(path+".endpoint", "no endpoint of that name")
		}
	}
}

// isLoopback does not look names up, localhost apart: what a name means can change after the check.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func oneOf[T comparable](v T, set ...T) bool { return slices.Contains(set, v) }
