package turns

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
)

// noProgressRounds is how often in a row the same must happen before a turn is refused.
const noProgressRounds = 3

// round is a reply on a path together with what the user answered its calls with.
type round struct {
	calls   []ToolUse
	results map[string]ToolResult
}

// lastRounds are the newest rounds of a path and the new turn below it, newest first, at most noProgressRounds. Of several
// answers to a call the newest holds. Replies that are no part of the history make no round. A message of the user that answers
// nothing is progress by itself, so rounds above it are not looked at.
func lastRounds(path []PathRow, content []Block) (rounds []round) {
	open := round{results: make(map[string]ToolResult)}
	open.answer(content)
	for _, row := range path {
		switch {
		case len(rounds) == noProgressRounds:
			return rounds
		case row.User != nil && len(row.User.Content) > 0 && !answersCalls(row.User.Content):
			return rounds
		case row.User != nil:
			open.answer(row.User.Content)
		case row.Reply.counts():
			open.calls = callsOf(row.Reply)
			rounds = append(rounds, open)
			open = round{results: make(map[string]ToolResult)}
		}
	}
	return rounds
}

func (r round) answer(content []Block) {
	for _, b := range content {
		if result, ok := b.(ToolResult); ok {
			if _, newer := r.results[result.ToolUseID]; !newer {
				r.results[result.ToolUseID] = result
			}
		}
	}
}

// checkProgress refuses a new turn that answers calls with CodeNoProgress if the three newest replies above it made the same
// call, or if the three newest answers, the new turn's among them, gave the same tool the same result or error. Only what
// came after the last message that answered nothing is looked at: it is the loop of an agent that is stopped. Calls are the
// same if their arguments are as JSON: the order of keys and white space do not matter, and numbers are compared as they are
// written. Where replies make several calls, one that recurs in each of them is enough. It is pure; path is newest row first.
func checkProgress(path []PathRow, content []Block) error {
	if !answersCalls(content) {
		return nil
	}
	rounds := lastRounds(path, content)
	if len(rounds) < noProgressRounds {
		return nil
	}
	if tool, ok := recurs(rounds, round.callKeys); ok {
		return noProgress(tool, "call", "the model made the same tool call in three replies in a row")
	}
	if tool, ok := recurs(rounds, round.resultKeys); ok {
		return noProgress(tool, "result", "the same tool gave the same result three times in a row")
	}
	return nil
}

// recurs finds a tool of which something recurs in all rounds.
func recurs(rounds []round, keys func(r round, tool string) map[[sha256.Size]byte]bool) (tool string, ok bool) {
	seen := make(map[string]bool)
	for _, use := range rounds[0].calls {
		if seen[use.Name] {
			continue
		}
		seen[use.Name] = true
		everywhere := keys(rounds[0], use.Name)
		for _, r := range rounds[1:] {
			if len(everywhere) == 0 {
				break
			}
			there := keys(r, use.Name)
			maps.DeleteFunc(everywhere, func(key [sha256.Size]byte, _ bool) bool { return !there[key] })
		}
		if len(everywhere) > 0 {
			return use.Name, true
		}
	}
	return "", false
}

// callKeys are digests of the arguments that a tool was called with in a round.
func (r round) callKeys(tool string) map[[sha256.Size]byte]bool {
	keys := make(map[[sha256.Size]byte]bool)
	for _, use := range r.calls {
		if use.Name == tool {
			keys[sha256.Sum256(canonicalJSON(use.InputJSON))] = true
		}
	}
	return keys
}

// resultKeys are digests of what a tool gave in a round.
func (r round) resultKeys(tool string) map[[sha256.Size]byte]bool {
	keys := make(map[[sha256.Size]byte]bool)
	for _, use := range r.calls {
		result, answered := r.results[use.ID]
		if use.Name != tool || !answered {
			continue
		}
		if encoded, err := EncodeContent(result.Content); err == nil {
			keys[sha256.Sum256(fmt.Appendf(encoded, " %t", result.IsError))] = true
		}
	}
	return keys
}

// canonicalJSON is JSON text with its keys in order and without white space; what is no JSON stays as it is, and no text at
// all is an empty object, which is how vendors write a call without arguments.
func canonicalJSON(text string) []byte {
	text = strings.TrimSpace(text)
	if text == "" {
		return []byte("{}")
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []byte(text)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return []byte(text)
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(value); err != nil {
		return []byte(text)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// maxToolName bounds a tool's name in an error, in bytes: a model can call a tool by any name.
const maxToolName = 64

func noProgress(tool, kind, what string) error {
	return &Error{Code: CodeNoProgress, Field: "input.content",
		Problem: what + "; find out why and send a message without results, or send the turn under a new id with override_no_progress to go on",
		Meta:    map[string]string{"tool": cutAtRune(tool, maxToolName), "repeated": kind}}
}
