package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/instrument"
	"github.com/turnd/turnd/migrations"
)

// Set when a build has no checkout to look at, as in a container: go build -ldflags "-X main.stampedVersion=v1.2.3".
var (
	stampedVersion string
	stampedCommit  string
)

// buildInfo says which program this is. It is the same in `turnd version --json`, the ready file, /version, the log and turnd_build_info.
type buildInfo struct {
	// Version is the module's, which in a checkout is made from the revision.
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Modified says that the checkout had changes that no commit has.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	// Schema is the version of the database's schema that this build serves.
	Schema int64 `json:"schema"`
}

// thisBuild finds out which program this is.
func thisBuild() buildInfo {
	b := buildInfo{Version: "(devel)", Schema: migrations.Latest()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Go = info.GoVersion
		if info.Main.Version != "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if stampedVersion != "" {
		b.Version = stampedVersion
	}
	if stampedCommit != "" {
		b.Commit = stampedCommit
	}
	return b
}

// version names the build.
func version() string { return thisBuild().Version }

type versionCmd struct {
	JSON bool `name:"json" help:"As JSON, with commit, Go and the schema's version."`
}

// Run implements the command.
func (c versionCmd) Run(context.Context) error {
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(thisBuild())
	}
	_, err := fmt.Fprintln(os.Stdout, "turnd "+version())
	return err
}

// showBuild shows which build this worker is.
func (a *app) showBuild() error {
	this := thisBuild()
	labels := metric.WithAttributes(attribute.String("version", this.Version), attribute.String("commit", this.Commit),
		attribute.String("go", this.Go), attribute.Int64("schema", this.Schema))
	maker := instrument.NewMaker(a.tel.Meter)
	maker.Gauge(instrument.BuildInfo, func(o metric.Float64Observer) { o.Observe(1, labels) })
	return maker.Err()
}
