package main

import (
	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/openai/responses"
)

// adapters are the wires that this build speaks.
func adapters() []llm.Adapter {
	return []llm.Adapter{anthropic.Adapter(), openai.Adapter(), responses.Adapter(), gemini.Adapter(), interactions.Adapter()}
}
