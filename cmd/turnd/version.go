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

// version names the build: the module's version, which in a checkout is made from the revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
