package llm

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

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
	if e.Name == "" {
		report(path, "has no name")
	}
	if _, known := wires[e.Wire]; !known {
		report(path+".wire", "unknown wire; use one of %s", strings.Join(wireNames(), ", "))
	}
	if e.Dialect != "" && (e.Wire != WireOpenAIChat || !oneOf(e.Dialect, DialectVendor, DialectCompatible)) {
		report(path+".dialect", "only for %s: %s or %s", WireOpenAIChat, DialectVendor, DialectCompatible)
	}
	e.checkAddress(path, report)
	e.checkWebhook(path, report)
	e.checkChoices(path, report)
	e.checkNumbers(path, report)
	e.checkCapabilities(path+".capabilities", report)
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
	case !looksLikeKey(e.Key):
		report(path+".key", "holds a character that no key has, such as a space or a line end")
	}
}

func looksLikeKey(key Secret) bool {
	return !strings.ContainsFunc(key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' })
}

func (e Endpoint) checkWebhook(path string, report reporter) {
	switch {
	case e.WebhookSecret == "":
	case e.Wire != WireOpenAIResponses && e.Wire != WireOpenAIChat:
		report(path+".webhook", "only for %s and %s: no other vendor calls back", WireOpenAIResponses, WireOpenAIChat)
	case !looksLikeKey(e.WebhookSecret):
		report(path+".webhook.secret", "holds a character that no secret has, such as a space or a line end")
	}
}

func (e Endpoint) checkChoices(path string, report reporter) {
	for _, c := range []struct {
		key, value string
		allowed    []string
	}{
		{"capabilities.idempotency", string(e.Capabilities.Idempotency), []string{"none", "advisory", "enforced"}},
		{"capabilities.scope", e.KeyScope, []string{scopeKey}},
		{"capabilities.disconnect_stops", e.DisconnectStops, []string{"yes", "no", "unknown"}},
		{"on_ambiguous", string(e.OnAmbiguous), []string{"abandon", "retry", "hold"}},
		{"on_partial", string(e.OnPartial), []string{"discard", "continue"}},
	} {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			report(path+"."+c.key, "unknown; use one of %s", strings.Join(c.allowed, ", "))
		}
	}
}

func (e Endpoint) checkNumbers(path string, report reporter) {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"limits.first_byte", e.Limits.FirstByte},
		{"limits.idle", e.Limits.Idle},
		{"limits.total", e.Limits.Total},
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
		{"prices.input", e.Prices.Input},
		{"prices.output", e.Prices.Output},
		{"prices.cache_read", e.Prices.CacheRead},
		{"prices.cache_write", e.Prices.CacheWrite},
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

// checkRoute checks one model's route. The same entry twice would be a second try under the name of a fallback.
func (c Config) checkRoute(path string, route []Target, report reporter) {
	if len(route) == 0 {
		report(path, "empty; name an endpoint and its model")
	}
	for i, t := range route {
		if slices.Contains(route[:i], t) {
			report(path, "names the same model at the same endpoint twice")
		}
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
