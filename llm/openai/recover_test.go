package openai_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

var origin = turns.Origin{
	Conversation: turns.ConversationKey(uuid.MustParse("6f1d2a3b-0000-8000-8000-000000000001")),
	Turn:         turns.TurnID{UUID: uuid.MustParse("6f1d2a3b-0000-7000-8000-000000000002")}, Generation: 2,
}

// keeper is a client of an endpoint that keeps its replies.
type keeper struct {
	*openai.Client
	route turns.Route
}

func newKeeper(t *testing.T, url string) keeper {
	t.Helper()
	client := wire.NewClient(wire.Options{})
	t.Cleanup(client.Close)
	return keeper{openai.New(client, llm.Endpoint{BaseURL: url, Key: "sk-x"}), turns.Route{
		ProviderModel: "demo", Limits: turns.Limits{Total: 10 * time.Second}, Capabilities: turns.Capabilities{Lookup: true},
	}}
}

// call makes a call for an origin and returns what came of it.
func (k keeper) call(t *testing.T, of turns.Origin) llmtest.Result {
	t.Helper()
	req, err := k.Build(k.route, turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "a")}, Origin: of})
	require.NoError(t, err)
	return llmtest.Collect(t, k.Generate(t.Context(), turns.Call{Request: req}))
}

// recover asks for a lost answer.
func (k keeper) recover(t *testing.T, of turns.Origin, responseID string) llmtest.Result {
	t.Helper()
	lost := turns.LostCall{Request: turns.Request{Route: k.route}, Origin: of, ResponseID: responseID}
	return llmtest.Collect(t, k.Recover(t.Context(), lost))
}

// heard joins the deltas of each block, so that replies that were cut elsewhere compare equal.
func heard(r llmtest.Result) []any {
	out := []any{r.ResponseID, r.Usage, r.Finished}
	for _, b := range r.Blocks {
		out = append(out, b)
	}
	return out
}

func TestALostReplyIsFoundByWhoseItIsOrByItsIdAsItsStreamGaveIt(t *testing.T) {
	for name, blocks := range map[string][]scripted.Block{
		"text":      {{Text: "naïve 你好 \U0001F980 words"}},
		"a refusal": {{Refusal: "I can not."}},
		"calls": {{Text: "I look."}, {ToolUse: &scripted.ToolUse{ID: "t1", Name: "f", Input: `{ "z": 12345678901234567890.10, "a":"\u00e9"}`}},
			{ToolUse: &scripted.ToolUse{ID: "t2", Name: "g"}}},
		"only a call": {{ToolUse: &scripted.ToolUse{ID: "t1", Name: "f", Input: `{}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
				{Match: scripted.Match{Nth: 2}, Plan: scripted.Plan{Blocks: blocks, Steps: []scripted.Step{{At: scripted.AtBeforeHeaders, Do: scripted.DoReset}}}},
				{Plan: scripted.Plan{Blocks: blocks}},
			}})
			k := newKeeper(t, s.URL())
			other := origin
			other.Generation++
			whole := k.call(t, other)
			require.NotNil(t, whole.Finished)
			lost := k.call(t, origin)
			require.Equal(t, turns.ClassAmbiguous, lost.Err.Class)
			require.NoError(t, s.WaitFinished(t.Context(), 2))

			found := k.recover(t, origin, "")
			require.Equal(t, s.Calls()[1].ResponseID, found.ResponseID)
			byID := k.recover(t, origin, whole.ResponseID)
			require.Empty(t, cmp.Diff(heard(whole), heard(byID)))
			found.ResponseID = whole.ResponseID
			require.Empty(t, cmp.Diff(heard(whole), heard(found)))
			require.Equal(t, 2, s.Counts().Generations, "asking generates nothing")

			of, err := k.OriginOf(t.Context(), whole.ResponseID)
			require.NoError(t, err)
			require.Equal(t, other, of)
		})
	}
}

func TestAReplyThatIsNotKeptIsNotThere(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{
		Blocks: []scripted.Block{{Text: "a b c"}}, Steps: []scripted.Step{{At: scripted.AfterDelta(2), Do: scripted.DoErrorEvent}},
	}}}})
	k := newKeeper(t, s.URL())
	failed := k.call(t, origin)
	require.NotEmpty(t, failed.ResponseID)
	for _, id := range []string{"", failed.ResponseID, "a/../b?c"} {
		r := k.recover(t, origin, id)
		require.ErrorIs(t, r.Err, turns.ErrNotThere)
		require.NotEqual(t, turns.ClassTerminal, r.Err.Class, "it may come yet")
		require.Empty(t, r.Deltas)
	}
	require.ErrorIs(t, k.recover(t, turns.Origin{}, "").Err, turns.ErrNotThere, "whose it is, is not known")
	_, err := k.OriginOf(t.Context(), failed.ResponseID)
	require.ErrorIs(t, err, turns.ErrNotThere)

	k.route.Capabilities.Lookup = false
	r := k.recover(t, origin, "")
	require.Equal(t, turns.ClassTerminal, r.Err.Class, "an endpoint that was not asked to keep anything is not asked for it")
}

// told is a server that answers every question with the same.
func told(t *testing.T, status int, body string) keeper {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, http.MethodGet, r.Method)
		require.Equal(t, "Bearer sk-x", r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return newKeeper(t, s.URL)
}

func TestWhatAServerSaysOfALostReplyHasItsClass(t *testing.T) {
	mine := fmt.Sprintf(`"metadata":{"turnd_conversation":%q,"turnd_turn":%q,"turnd_generation":"2"}`, origin.Conversation, origin.Turn)
	for name, tt := range map[string]struct {
		status   int
		body     string
		id       string
		want     turns.CallClass
		notThere bool
	}{
		"no such path":             {404, `404 page not found`, "", turns.ClassTerminal, false},
		"no such reply":            {404, `{"error":{"message":"m","type":"invalid_request_error"}}`, "x", turns.ClassAmbiguous, true},
		"no key":                   {401, `{"error":{"message":"m","type":"invalid_request_error","code":"invalid_api_key"}}`, "", turns.ClassTerminal, false},
		"too many questions":       {429, `{"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}}`, "", turns.ClassThrottled, false},
		"it is down":               {503, `<html>`, "x", turns.ClassAmbiguous, false},
		"no JSON":                  {200, `{`, "", turns.ClassAmbiguous, false},
		"nothing":                  {200, `{"data":[]}`, "", turns.ClassAmbiguous, true},
		"others', by no filter":    {200, `{"data":[{"id":"x","choices":[{"finish_reason":"stop"}]}]}`, "", turns.ClassAmbiguous, true},
		"one that is not whole":    {200, `{"data":[{"id":"x","choices":[{"finish_reason":null}],` + mine + `}]}`, "", turns.ClassAmbiguous, true},
		"by its id, and not whole": {200, `{"id":"x","choices":[{"message":{"content":"a"},"finish_reason":null}]}`, "x", turns.ClassAmbiguous, true},
		"by its id, and broken":    {200, `{"id":"x","choices":[{"message":{"content":"a"},"finish_reason":"error"}]}`, "x", turns.ClassTerminal, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := told(t, tt.status, tt.body).recover(t, origin, tt.id)
			require.NotNil(t, r.Err)
			require.Equal(t, tt.want, r.Err.Class)
			if tt.notThere {
				require.ErrorIs(t, r.Err, turns.ErrNotThere)
			} else {
				require.NotErrorIs(t, r.Err, turns.ErrNotThere)
			}
		})
	}
	r := told(t, 200, `{"id":"x","choices":[{"finish_reason":"error"}]}`).recover(t, origin, "x")
	var outcome *turns.OutcomeError
	require.ErrorAs(t, r.Err, &outcome)
	require.Equal(t, turns.ClassTransient, outcome.Call.Class)
}

func TestOfAListOnlyTheWholeOnesCountAndCallsWithoutIdsAreToldApart(t *testing.T) {
	mine := fmt.Sprintf(`"metadata":{"turnd_conversation":%q,"turnd_turn":%q,"turnd_generation":"2"}`, origin.Conversation, origin.Turn)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"/v1/chat/completions": `{"data":[{"id":"cut","choices":[{"finish_reason":null}],` + mine + `},{"id":"whole","choices":[{"finish_reason":"stop"}],` + mine + `}]}`,
			"/v1/chat/completions/whole": `{"id":"whole","choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}},` +
				`{"function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		}
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	r := newKeeper(t, s.URL).recover(t, origin, "")
	require.Nil(t, r.Err)
	require.Equal(t, "whole", r.ResponseID)
	require.Len(t, r.Blocks, 2)
	require.Equal(t, []string{"f", "g"}, []string{r.Blocks[0].ToolName, r.Blocks[1].ToolName})
}

func TestOfSeveralRepliesToOneGenerationTheNewestWholeOneIsTaken(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "a b c"}}}}}})
	k := newKeeper(t, s.URL())
	first, second := k.call(t, origin), k.call(t, origin)
	require.NotEqual(t, first.ResponseID, second.ResponseID)
	require.Equal(t, second.ResponseID, k.recover(t, origin, "").ResponseID)
}

func TestAReplyThatWasBegunBeforeTheLostCallIsAnEarlierCalls(t *testing.T) {
	mine := fmt.Sprintf(`"metadata":{"turnd_conversation":%q,"turnd_turn":%q,"turnd_generation":"2"}`, origin.Conversation, origin.Turn)
	whole := fmt.Sprintf(`"id":"x","created":%d,"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],`, time.Now().Add(-time.Hour).Unix()) + mine
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/x") {
			fmt.Fprint(w, "{"+whole+"}")
		} else {
			fmt.Fprint(w, `{"data":[{`+whole+`}]}`)
		}
	}))
	t.Cleanup(s.Close)
	k := newKeeper(t, s.URL)
	for age, found := range map[time.Duration]bool{time.Minute: false, 2 * time.Hour: true, 0: true} {
		r := llmtest.Collect(t, k.Recover(t.Context(), turns.LostCall{Request: turns.Request{Route: k.route}, Origin: origin, Age: age}))
		require.Equal(t, found, r.Err == nil, age)
	}
}

func TestOnlyAnEndpointThatIsAskedForRepliesIsAskedToKeepThem(t *testing.T) {
	c := openai.New(nil, llm.Endpoint{})
	prompt := turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "a")}, Origin: origin}
	plain, err := c.Build(turns.Route{ProviderModel: "m"}, prompt)
	require.NoError(t, err)
	require.NotContains(t, string(plain.Body), "turnd")
	require.NotContains(t, string(plain.Body), "store")
	keeps := turns.Route{ProviderModel: "m", Capabilities: turns.Capabilities{Lookup: true}}
	kept, err := c.Build(keeps, prompt)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(string(plain.Body), "}")+fmt.Sprintf(
		`,"store":true,"metadata":{"turnd_conversation":%q,"turnd_generation":"2","turnd_turn":%q}}`, origin.Conversation, origin.Turn), string(kept.Body))
	prompt.Origin = turns.Origin{}
	nobodys, err := c.Build(keeps, prompt)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(nobodys.Body), `,"store":true}`))
}

func TestTheAdapterRecoversAsAllAdaptersDo(t *testing.T) {
	llmtest.RunRecovery(t, openai.Adapter(), llmtest.Recovery{Capabilities: turns.Capabilities{Lookup: true}})
}

func TestOfTwoCallsForOneGenerationEachFindsItsOwnAnswer(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "a b c"}}}}}})
	k := newKeeper(t, s.URL())
	req, err := k.Build(k.route, turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "a")}, Origin: origin})
	require.NoError(t, err)
	ids := map[turns.CallID]string{}
	for range 2 {
		id := turns.CallID{UUID: uuid.New()}
		ids[id] = llmtest.Collect(t, k.Generate(t.Context(), turns.Call{ID: id, Request: req})).ResponseID
	}
	for id, response := range ids {
		lost := turns.LostCall{ID: id, Request: turns.Request{Route: k.route}, Origin: origin}
		require.Equal(t, response, llmtest.Collect(t, k.Recover(t.Context(), lost)).ResponseID)
	}
	lost := turns.LostCall{ID: turns.CallID{UUID: uuid.New()}, Request: turns.Request{Route: k.route}, Origin: origin}
	require.ErrorIs(t, llmtest.Collect(t, k.Recover(t.Context(), lost)).Err, turns.ErrNotThere)
}
