package scripted_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func TestAScriptThatCannotBeUsedIsRefusedByItsField(t *testing.T) {
	plan := func(body string) string { return `{"rules":[{},{"plan":{` + body + `}}]}` }
	for script, field := range map[string]string{
		`{`:                                    "script",
		`[]`:                                   "script",
		`{} {}`:                                "script",
		`{"rulez":[]}`:                         "rulez",
		`{"Rules":[]}`:                         "Rules",
		`{"endpoint":{"idempotency":"maybe"}}`: "endpoint.idempotency",
		`{"endpoint":{"retention_s":-1}}`:      "endpoint.retention_s",
		`{"endpoint":{"lookup_delay_ms":-1}}`:  "endpoint.lookup_delay_ms",
		`{"rules":[{"times":-1}]}`:             "rules[0].times",
		`{"rules":[{"match":{"wire":"gopher"}}]}`:                                            "rules[0].match.wire",
		`{"rules":[{"match":{"text":"("}}]}`:                                                 "rules[0].match.text",
		`{"rules":[{"match":{"key":"["}}]}`:                                                  "rules[0].match.key",
		`{"rules":[{"match":{"nth":-2}}]}`:                                                   "rules[0].match.nth",
		plan(`"pace":1`):                                                                     "rules[1].plan.pace",
		plan(`"pace_ms":-1`):                                                                 "rules[1].plan.pace_ms",
		plan(`"pace_ms":"1"`):                                                                "rules.plan.pace_ms",
		plan(`"usage":"some"`):                                                               "rules[1].plan.usage",
		plan(`"write":"twice"`):                                                              "rules[1].plan.write",
		plan(`"line_end":"lfcr"`):                                                            "rules[1].plan.line_end",
		plan(`"on_client_gone":"cry"`):                                                       "rules[1].plan.on_client_gone",
		plan(`"reply":{"deltas":-1}`):                                                        "rules[1].plan.reply.deltas",
		plan(`"reply":{"deltas":1,"delta_bytes":70000}`):                                     "rules[1].plan.reply.delta_bytes",
		plan(`"reply":{"deltas":1000000,"delta_bytes":65536}`):                               "rules[1].plan.reply",
		plan(`"reply":{"deltas":1},"blocks":[{"text":"x"}]`):                                 "rules[1].plan.blocks",
		plan(`"blocks":[{"text":"x"},{}]`):                                                   "rules[1].plan.blocks[1]",
		plan(`"blocks":[{"refusal":"x","signature":"s"}]`):                                   "rules[1].plan.blocks[0].signature",
		plan(`"blocks":[{"refusal":"x","cites":["{}"]}]`):                                    "rules[1].plan.blocks[0].cites",
		plan(`"blocks":[{"text":"x","cites":["{}","{"]}]`):                                   "rules[1].plan.blocks[0].cites[1]",
		plan(`"blocks":[{"thinking":"x","phase":"p"}]`):                                      "rules[1].plan.blocks[0].phase",
		plan(`"blocks":[{"tool_use":{"id":"","name":"f"}}]`):                                 "rules[1].plan.blocks[0].tool_use",
		plan(`"steps":[{"at":"noon","do":"reset"}]`):                                         "rules[1].plan.steps[0].at",
		plan(`"steps":[{"at":"delta:01","do":"reset"}]`):                                     "rules[1].plan.steps[0].at",
		plan(`"reply":{"deltas":3},"steps":[{"at":"delta:4","do":"reset"}]`):                 "rules[1].plan.steps[0].at",
		plan(`"steps":[{"at":"delta:1","do":"status","status":500}]`):                        "rules[1].plan.steps[0].do",
		plan(`"steps":[{"at":"delta:1","do":"wait"}]`):                                       "rules[1].plan.steps[0].gate",
		plan(`"steps":[{"at":"delta:1","do":"reset","gate":"g"}]`):                           "rules[1].plan.steps[0].gate",
		plan(`"steps":[{"at":"request_read","do":"status"}]`):                                "rules[1].plan.steps[0].status",
		plan(`"steps":[{"at":"delta:1","do":"reset","status":500}]`):                         "rules[1].plan.steps[0].status",
		plan(`"steps":[{"at":"delta:1","do":"reset","headers":{"a":"b"}}]`):                  "rules[1].plan.steps[0].headers",
		plan(`"steps":[{"at":"delta:1","do":"reset","error":"api_error"}]`):                  "rules[1].plan.steps[0].error",
		plan(`"steps":[{"at":"accept","do":"reset"},{"at":"delta:1","do":"x"}]`):             "rules[1].plan.steps[1].do",
		plan(`"steps":[{"at":"accept","do":"close"},{"at":"delta:1","do":"reset"}]`):         "rules[1].plan.steps[1].at",
		`{"rules":[{"match":{"text":"x"},"plan":{"steps":[{"at":"accept","do":"reset"}]}}]}`: "rules[0].match",
	} {
		_, err := scripted.ParseScript(strings.NewReader(script))
		var bad *scripted.FieldError
		require.ErrorAs(t, err, &bad, "%s", script)
		require.Equal(t, field, bad.Field, "%s", script)
		require.Contains(t, err.Error(), field)
	}
}

func TestAScriptThatIsTooLongIsRefused(t *testing.T) {
	_, err := scripted.ParseScript(strings.NewReader(strings.Repeat(" ", 17<<20)))
	require.Error(t, err)
}

func TestAReaderThatFailsIsNotABadScript(t *testing.T) {
	broken := errors.New("broken")
	_, err := scripted.ParseScript(failing{broken})
	require.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTheJSONOfAScriptReadsBackAsTheScript(t *testing.T) {
	script := scripted.Script{
		Endpoint: scripted.Endpoint{Idempotency: scripted.IdempotencyEnforce, RetentionS: 60, LookupDelayMS: 5},
		Rules: []scripted.Rule{
			{Name: "a", Match: scripted.Match{Wire: "openai.chat", Text: "x", Key: "y", Model: "demo", Nth: 2}, Times: 3,
				Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 3, DeltaBytes: 5, Seed: -1}, StopReason: "max_tokens",
					Usage: "none", PaceMS: 1, Write: "byte", LineEnd: "cr", OnClientGone: "stop",
					Steps: []scripted.Step{
						{At: "request_read", Do: "status", Status: 429, Headers: map[string]string{"retry-after": "1"}, Error: "e"},
						{At: scripted.AfterDelta(2), Do: "wait", Gate: "mid"},
					}}},
			{Name: "b", Plan: scripted.Plan{Blocks: everyBlock}},
			{Name: "c", Plan: scripted.Plan{Reply: &scripted.Reply{}}},
		},
	}
	raw, err := json.Marshal(script)
	require.NoError(t, err)
	got, err := scripted.ParseScript(strings.NewReader(string(raw)))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(script, got))
}
