package main

import (
	"context"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// Variables of vendors' keys, under the names that everybody uses for them.
const (
	anthropicKey = "ANTHROPIC_API_KEY"
	openAIKey    = "OPENAI_API_KEY"
)

// models is who answers.
type models struct {
	*llm.Router
	// demo is set while the demo is served.
	demo *demo
}

// openModels finds the models: a models file, else keys, else the demo.
func openModels(ctx context.Context, cfg Config, logger *slog.Logger, meter metric.Meter) (models, error) {
	options := llm.Options{
		Adapters:    adapters(),
		Limits:      turns.Limits{FirstByte: cfg.FirstByteTimeout, Idle: cfg.IdleTimeout, Total: cfg.TotalTimeout},
		OnAmbiguous: turns.OnAmbiguous(cfg.OnAmbiguous),
		OnPartial:   turns.OnPartial(cfg.OnPartial),
		Logger:      logger,
		Meter:       meter,
	}
	if cfg.wantsDemo() {
		return openDemo(ctx, options)
	}
	chosen, err := cfg.chooseModels()
	if err != nil {
		return models{}, err
	}
	router, err := llm.New(chosen, options)
	if err != nil {
		return models{}, err
	}
	return models{Router: router}, nil
}

func (c Config) chooseModels() (llm.Config, error) {
	if c.Models != "" {
		return llm.Load(c.Models)
	}
	return llm.FromKeys(llm.Secret(os.Getenv(anthropicKey)), c.AnthropicBaseURL, llm.Secret(os.Getenv(openAIKey)), c.OpenAIBaseURL), nil
}

// wantsDemo reports whether the demo is asked for, or nothing else is there.
func (c Config) wantsDemo() bool {
	return c.Demo || c.Models == "" && os.Getenv(anthropicKey) == "" && os.Getenv(openAIKey) == ""
}

func openDemo(ctx context.Context, options llm.Options) (models, error) {
	d, err := startDemo(ctx, options.Logger)
	if err != nil {
		return models{}, err
	}
	router, err := llm.New(llm.Demo(d.url), options)
	if err != nil {
		return models{}, err
	}
	options.Logger.WarnContext(ctx, "this is a demo: answers are scripted and no model is called; set a key or --models for a real one")
	return models{Router: router, demo: d}, nil
}

// close lets go of connections and ends the demo.
func (m models) close(ctx context.Context) error {
	m.Router.Close()
	if m.demo == nil {
		return nil
	}
	return m.demo.close(ctx)
}
