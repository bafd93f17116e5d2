package responses_test

import (
	"testing"

	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/turns"
)

func TestAResponseInTheBackgroundIsAskedForAgain(t *testing.T) {
	llmtest.RunRecovery(t, responses.Adapter(), llmtest.Recovery{Capabilities: turns.Capabilities{Resume: true, Cancel: true}})
}

func TestAResponseInAConversationIsFoundThere(t *testing.T) {
	llmtest.RunRecovery(t, responses.Adapter(), llmtest.Recovery{Capabilities: turns.Capabilities{Lookup: true, Fence: true}, NoUsage: true})
}
