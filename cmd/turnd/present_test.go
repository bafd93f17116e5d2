package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns/access"
)

// withProof presents a key on a connection.
func withProof(text access.Text) grpc.DialOption {
	return grpc.WithPerRPCCredentials(proof(text.Reveal()))
}

func TestAKeyFileIsReadWithBlanksAroundAndRefusedIfItIsNotWhole(t *testing.T) {
	whole := access.Mint().Reveal()
	file := filepath.Join(t.TempDir(), "key")
	read := func(content string) (proof, error) {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return presentFlags{KeyFile: file}.proof()
	}
	for _, content := range []string{whole, whole + "\n", " \r\n\t" + whole + " \r\n\n", "eyJhbGciOi.J9.sig\n"} {
		p, err := read(content)
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(content), string(p))
	}
	for content, want := range map[string]string{
		whole[:50]:                           "cut short or mistyped",
		whole + "\n" + whole:                 "one key or token and nothing else",
		"":                                   "holds no key",
		" \n":                                "holds no key",
		"Bearer " + whole:                    "one key or token and nothing else",
		"\xef\xbb\xbf" + whole:               "one key or token and nothing else",
		strings.Repeat("a", auth.MaxToken+1): "more than a key",
		strings.Repeat("a", maxKeyFile+100):  "more than a key",
	} {
		_, err := read(content)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "--key-file")
		require.NotContains(t, err.Error(), whole[30:50])
	}
	_, err := presentFlags{KeyFile: file + ".none"}.proof()
	require.ErrorContains(t, err, "--key-file")
}

func TestAKeyOfTheEnvironmentIsPresentedUnlessThereIsAFile(t *testing.T) {
	inVariable, inFile := access.Mint().Reveal(), access.Mint().Reveal()
	t.Setenv(keyVariable, inVariable+"\n")
	p, err := presentFlags{}.proof()
	require.NoError(t, err)
	require.Equal(t, inVariable, string(p))
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(inFile), 0o600))
	p, err = presentFlags{KeyFile: file}.proof()
	require.NoError(t, err)
	require.Equal(t, inFile, string(p))
	t.Setenv(keyVariable, inVariable[:30])
	_, err = presentFlags{}.proof()
	require.ErrorContains(t, err, keyVariable)
	t.Setenv(keyVariable, "")
	p, err = presentFlags{}.proof()
	require.NoError(t, err)
	require.Empty(t, p.id())
	require.NoError(t, unknownVariables([]string{keyVariable + "=x"}, knownVariables(t)))
}

// knownVariables are those that the command line knows.
func knownVariables(t *testing.T) []string {
	parser, err := newParser(&cli{})
	require.NoError(t, err)
	return variables(parser.Model)
}

func TestAProofIsNeverPrinted(t *testing.T) {
	p := proof(access.Mint().Reveal())
	require.Equal(t, "*** *** *** ***", fmt.Sprintf("%v %s %q %#v", p, p, p, p))
}
