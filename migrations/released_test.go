package migrations_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The checksums are those of every migration file. Until a file is part of a release, whoever edits it writes its new
// sum (sha256sum postgres/*.sql sqlite/*.sql, in this folder). With the release its line is frozen: databases out there
// hold what that file made, so a later change is a new file with a new line, and a changed old line is refused in review.
func TestAReleasedMigrationNeverChanges(t *testing.T) {
	listed, err := os.ReadFile(filepath.Join("testdata", "checksums"))
	require.NoError(t, err)

	var actual strings.Builder
	for _, pattern := range []string{"postgres/*.sql", "sqlite/*.sql"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			fmt.Fprintf(&actual, "%x  %s\n", sha256.Sum256(text), filepath.ToSlash(name))
		}
	}
	require.Equal(t, string(listed), actual.String())
}

func TestBothEnginesHaveMigrationsOfTheSameNames(t *testing.T) {
	names := func(folder string) []string {
		paths, err := filepath.Glob(folder + "/*.sql")
		require.NoError(t, err)
		for i := range paths {
			paths[i] = filepath.Base(paths[i])
		}
		return paths
	}
	require.Equal(t, names("postgres"), names("sqlite"))
}
