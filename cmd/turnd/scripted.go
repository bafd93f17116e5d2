package main

import (
	"context"
	"os"

	"github.com/turnd/turnd/llm/scripted"
)

// scriptedCmd has no variables: it is for tests, where a setting of the service must not leak into it.
type scriptedCmd struct {
	Listen    string `default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Where to listen; loopback only, port 0 picks one."`
	ReadyFile string `placeholder:"FILE" help:"Written once serving, removed at exit."`
	Script    string `placeholder:"FILE" help:"JSON script to play; otherwise every request gets the same few sentences."`
}

// Run implements the command.
func (c scriptedCmd) Run(ctx context.Context) error {
	return scripted.Run(ctx, scripted.RunOptions{
		Listen: c.Listen, ReadyFile: c.ReadyFile, ScriptFile: c.Script, Stdout: os.Stdout,
		Log: newLogger(os.Stderr, logText, levelInfo),
	})
}
