package llm

import (
	"time"

	"github.com/turnd/turnd/turns"
)

// DefaultLimits hold where neither an endpoint nor the process says otherwise.
var DefaultLimits = turns.Limits{FirstByte: 2 * time.Minute, Idle: 5 * time.Minute, Total: 30 * time.Minute}

// The models that FromKeys offers, under the names their vendors know. The first of each list is its vendor's default.
// They age; a models file names others.
var (
	AnthropicModels = []string{"claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"}
	OpenAIModels    = []string{"gpt-5.5", "gpt-5.4-mini"}
)

// DemoModel is the model of Demo.
const DemoModel = "demo"

// FromKeys is the Config of a process that was given keys and no models file: an endpoint for each vendor that has a
// key, with that vendor's usual models; a base URL takes the place of the vendor's own. The first endpoint's first model
// is the default. Without any key there are no models, which New refuses.
func FromKeys(anthropicKey Secret, anthropicBase string, openaiKey Secret, openaiBase string) Config {
	var c Config
	if anthropicKey != "" {
		c.add(Endpoint{Name: "anthropic", Wire: WireAnthropicMessages, BaseURL: anthropicBase, Key: anthropicKey},
			AnthropicModels)
	}
	if openaiKey != "" {
		c.add(Endpoint{Name: "openai", Wire: WireOpenAIChat, BaseURL: openaiBase, Key: openaiKey}, OpenAIModels)
	}
	return c
}

// Demo is the Config of one model that needs no key, served at baseURL on the Messages wire.
func Demo(baseURL string) Config {
	var c Config
	c.add(Endpoint{Name: DemoModel, Wire: WireAnthropicMessages, BaseURL: baseURL}, []string{DemoModel})
	return c
}

func (c *Config) add(e Endpoint, models []string) {
	c.Endpoints = append(c.Endpoints, e)
	for _, m := range models {
		c.Models = append(c.Models, Model{Name: m, Route: []Target{{Endpoint: e.Name, Model: m}}})
	}
	if c.DefaultModel == "" {
		c.DefaultModel = models[0]
	}
}
