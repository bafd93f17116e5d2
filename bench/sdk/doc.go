// Package sdk holds the scripted provider to what the vendors' own Go clients understand: it is a second opinion on a wire that
// this project wrote both sides of. It is a module of its own, since building those clients takes minutes and gigabytes that
// nobody else should spend; make wire runs it.
//
// The clients are asked to send each request once: all of them would try again by themselves, and what is tried here is one
// answer. Where the npm package aimock is installed the adapters are held to that provider too, which this project did not
// write either.
package sdk

import (
	"github.com/turnd/turnd/llm/scripted"
)

// Words is text that is easy to break on the way: runes of all lengths, white space, what JSON escapes.
const Words = "naïve 你好\U0001F980 \"quoted\" <b> \\ and\n\tthe rest "

// Input is the input of a call with all its digits.
const Input = `{"city":"Zürich","n":12345678901234567}`

// Called is the call that Mixed makes.
var Called = scripted.ToolUse{ID: "call_01", Name: "look_up", Input: Input}

// Mixed is a reply of all that every wire has words for.
var Mixed = []scripted.Block{{Thinking: "let me see", Signature: "EqQB+/=="}, {Text: Words}, {ToolUse: &Called}}

// Serve starts a provider that answers every request by a plan.
func Serve(t scripted.TB, plan scripted.Plan) *scripted.Server {
	t.Helper()
	return scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: plan}}})
}

// Status is a plan that answers with a status and the vendor's word for an error; empty is the usual one.
func Status(status int, word string) scripted.Plan {
	return scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: status, Error: word}}}
}

// At is a plan that says Words and does something after its third delta.
func At(do scripted.Action) scripted.Plan {
	return scripted.Plan{
		Blocks: []scripted.Block{{Text: Words}},
		Steps:  []scripted.Step{{At: scripted.AfterDelta(3), Do: do}},
	}
}
