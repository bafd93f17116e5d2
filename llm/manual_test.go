package llm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
)

func TestTheFileOfTheManualLoads(t *testing.T) {
	manual, err := os.ReadFile("../docs/models.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(manual)
	require.NotNil(t, example)
	t.Setenv("CLAUDE_KEY", "sk-claude")
	t.Setenv("GPT_WEBHOOK_SECRET", "whsec_1")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gpt.key"), []byte("sk-gpt\n"), 0o600))
	file := filepath.Join(dir, "models.yaml")
	require.NoError(t, os.WriteFile(file, example[1], 0o600))
	c, err := llm.Load(file)
	require.NoError(t, err)
	require.Len(t, c.Endpoints, 3)
	require.Len(t, c.Models[0].Route, 2)
}
