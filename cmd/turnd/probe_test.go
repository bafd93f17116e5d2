package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func TestAProbeSaysItsBudgetAndPrintsWhatItSaw(t *testing.T) {
	script := scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 40}, PaceMS: 1}}}}
	provider, file := fast(t, script)
	p := launch(t, nil, "probe", "e", "--models", file, "--yes")
	require.Equal(t, 0, p.code(), p.err.String())
	require.Contains(t, p.err.String(), "probing e (anthropic.messages, model demo): at most 4 calls of 100 tokens in and 256 out each; the models file has no prices for it\n")
	require.Regexp(t, `(?m)^CAPABILITY +CLAIMED +SEEN +EVIDENCE$`, p.out.String())
	require.Regexp(t, `(?m)^idempotency +none +none +two sends made two responses`, p.out.String())
	require.Contains(t, p.out.String(), "endpoints:\n  e:\n    capabilities:\n      idempotency: none\n")
	require.Equal(t, 3, provider.Counts().Requests)

	script.Endpoint.Idempotency = scripted.IdempotencyEnforce
	require.NoError(t, provider.SetScript(script))
	p = launch(t, []string{"TURND_MODELS=" + file}, "probe", "e", "--model", "other", "--yes")
	require.Equal(t, 0, p.code(), p.err.String())
	require.Regexp(t, `(?m)^idempotency +none +enforced +two sends got one response`, p.out.String())
	require.Contains(t, p.err.String(), "model other")
}

func TestAProbeSpendsNothingWithoutConsent(t *testing.T) {
	provider, file := fast(t, scripted.Script{})
	require.Contains(t, fails(t, exitUsage, nil, "probe", "e", "--models", file), "--yes: nobody is there to be asked")
	for _, answer := range []string{"\n", "n\n", "yeah\n", "yeah"} {
		var status bytes.Buffer
		c := probeCmd{Endpoint: "e", Models: file}
		err := c.run(t.Context(), probeEnds{in: strings.NewReader(answer), terminal: true, out: &status, status: &status})
		require.EqualError(t, err, "nothing was sent")
		require.Contains(t, status.String(), "go on? [y/N] ")
	}
	require.Zero(t, provider.Counts().Requests)
	var out bytes.Buffer
	c := probeCmd{Endpoint: "e", Models: file}
	require.NoError(t, c.run(t.Context(), probeEnds{in: strings.NewReader("y\n"), terminal: true, out: &out, status: &out}))
	require.NotZero(t, provider.Counts().Requests)
}

func TestAProbeOfNothingSaysSo(t *testing.T) {
	_, file := fast(t, scripted.Script{})
	require.Contains(t, fails(t, exitUsage, nil, "probe", "nowhere", "--models", file, "--yes"), "has no endpoint of that name")
	require.Contains(t, fails(t, exitUsage, nil, "probe", "e"), "--models")
	require.Contains(t, fails(t, exitUsage, nil, "probe", "--models", file), "<endpoint>")
	require.Contains(t, fails(t, exitError, nil, "probe", "e", "--models", filepath.Join(t.TempDir(), "none.yaml")), "no such file")
}
