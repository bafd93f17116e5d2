package floor

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func TestTheRelayReadsWhatTheProviderSays(t *testing.T) {
	const text = "plain words, \"quoted\", back\\slash, größer, <b>\nand a new line "
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Name: "all", Plan: scripted.Plan{Blocks: []scripted.Block{{Text: text}}}}}})
	var got strings.Builder
	p := NewProvider(strings.TrimPrefix(s.URL(), "http://"), "hello")
	for range 2 { // on the same connection
		got.Reset()
		require.NoError(t, p.Generate(t.Context(), func(piece string) error {
			got.WriteString(piece)
			return nil
		}))
		require.Equal(t, text, got.String())
	}
	p.http.CloseIdleConnections()
}

func TestAReplyWithoutItsLastEventIsAnError(t *testing.T) {
	in := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n"
	n := 0
	each := func(string) error { n++; return nil }
	require.Error(t, events(bufio.NewReader(strings.NewReader(in)), each))
	require.Equal(t, 1, n)
	require.NoError(t, events(bufio.NewReader(strings.NewReader(in+"data: {\"type\":\"message_stop\"}\n\n")), each))
}
