package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
)

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(context.Context) error {
	_, err := fmt.Fprintln(os.Stdout, "turnd "+version())
	return err
}

// version is the module's version where the build knows it, with the revision if it was built in a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	if text == "" {
		text = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return text
}
