package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns/access"
)

// mints makes a key by the command line and gives its text.
func mints(t *testing.T, database string, args ...string) access.Text {
	t.Helper()
	p := launch(t, nil, append([]string{"keys", "create", "--database-url", database}, args...)...)
	require.Equal(t, 0, p.code(), p.err.String())
	line, ends := strings.CutSuffix(p.out.String(), "\n")
	require.True(t, ends)
	text, err := access.ParseText(line)
	require.NoError(t, err, "the key alone is on stdout")
	require.NotContains(t, p.err.String(), text.Reveal())
	require.Contains(t, p.err.String(), text.ID())
	return text
}

// reads asks a process for something as the owner of a key, and gives the status of the answer: NotFound is of one who is let in.
func (p *process) reads(text access.Text) codes.Code {
	p.t.Helper()
	conn, err := client.Dial(p.ready.Listen, withProof(text))
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, conn.Close()) }()
	_, err = turnsv1.NewConversationServiceClient(conn).GetConversation(p.t.Context(), &turnsv1.GetConversationRequest{ConversationId: uuid.NewString()})
	return status.Code(err)
}

func TestAKeyIsMadeUsedAndRevokedWhileItsDatabaseIsServed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		prints(t, "migrate", "up", "--database-url", database)
		early := mints(t, database, "--tenant", "acme", "--subject", "ann")
		p := serve(t, database, "--auth", "keys", "--auth-cache", "50ms", "--log-level", "debug")
		late := mints(t, database, "--tenant", "acme", "--subject", "ben", "--scopes", "read,operator", "--name", "Ben's", "--expires", "720h")
		other := mints(t, database, "--tenant", "other", "--subject", "ann")
		for _, text := range []access.Text{early, late, other} {
			require.Equal(t, codes.NotFound, p.reads(text))
		}
		require.Equal(t, codes.Unauthenticated, p.reads(access.Mint()))

		list := prints(t, "keys", "list", "--database-url", database, "--tenant", "acme")
		require.Contains(t, list, early.ID())
		require.Contains(t, list, "read,operator")
		require.Contains(t, list, "Ben's")
		require.NotContains(t, list, other.ID())
		require.Contains(t, prints(t, "keys", "list", "--database-url", database), other.ID())

		revoked := prints(t, "keys", "revoke", "--database-url", database, early.ID())
		require.Contains(t, revoked, "is revoked since")
		p.until(func() bool { return p.reads(early) == codes.Unauthenticated })
		whole := launch(t, nil, "keys", "revoke", "--database-url", database, late.Reveal())
		require.Equal(t, 0, whole.code(), whole.err.String())
		p.until(func() bool { return p.reads(late) == codes.Unauthenticated })
		require.Equal(t, codes.NotFound, p.reads(other))
		require.NotContains(t, p.err.String(), "auth is none")
		held := launch(t, []string{"TURND_KEY=" + other.Reveal()}, "held", "--server", p.ready.Listen)
		require.Equal(t, 1, held.code())
		require.Contains(t, held.err.String(), "SCOPE_MISSING")
		operator := mints(t, database, "--tenant", "other", "--subject", "ops", "--scopes", "operator")
		held = launch(t, []string{"TURND_KEY=" + operator.Reveal()}, "held", "--server", p.ready.Listen)
		require.Equal(t, 0, held.code(), held.err.String())
		require.Equal(t, 2, strings.Count(prints(t, "keys", "list", "--database-url", database), "revoked"))

		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.code())
		for _, text := range []access.Text{early, late, other} {
			for _, said := range []string{p.out.String(), p.err.String(), list, revoked, whole.out.String(), whole.err.String()} {
				require.NotContains(t, said, text.Reveal())
				require.NotContains(t, said, secretOf(text))
			}
		}
	})
}

// secretOf is what follows the id in a key.
func secretOf(text access.Text) string {
	return strings.TrimPrefix(text.Reveal(), access.Prefix+text.ID()+"_")
}

func TestASuspendedSubjectSendsNothingNewAndIsReinstated(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		p := serve(t, database, "--migrate", "on", "--auth-cache", "10ms")
		of := []string{"--database-url", database, "--tenant", "default", "--subject", "default"}
		sends := func() codes.Code {
			conn, err := client.Dial(p.ready.Listen)
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			in := &turnsv1.TurnInput{ConversationId: uuid.NewString(), TurnId: uuid.NewString(),
				Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: "hi"}}}}}
			_, err = turnsv1.NewTurnServiceClient(conn).SubmitTurn(t.Context(), &turnsv1.SubmitTurnRequest{Input: in})
			return status.Code(err)
		}
		require.Equal(t, codes.OK, sends())
		require.Contains(t, p.err.String(), "WRN auth is none: whoever can connect")
		prints(t, append([]string{"subjects", "suspend"}, of...)...)
		require.Contains(t, prints(t, "subjects", "list", "--database-url", database), "default")
		p.until(func() bool { return sends() == codes.PermissionDenied })
		require.Contains(t, prints(t, append([]string{"subjects", "reinstate"}, of...)...), "is reinstated")
		require.Contains(t, prints(t, append([]string{"subjects", "reinstate"}, of...)...), "was not suspended")
		p.until(func() bool { return sends() == codes.OK })
	})
}

func TestKeysThatCantBeAreRefusedByTheirFlags(t *testing.T) {
	good := []string{"keys", "create", "--tenant", "acme", "--subject", "ann"}
	for want, more := range map[string][]string{
		"--expires: 0s is too little":                       {"--expires", "0s"},
		"--expires: -1h0m0s is too little":                  {"--expires=-1h"},
		`--scopes: unknown scope "admin"`:                   {"--scopes", "turns,admin"},
		"--scopes: no scope":                                {"--scopes", ","},
		"--tenant: must be 1 to 128":                        {"--tenant", strings.Repeat("t", 200)},
		"--subject: must be 1 to 128":                       {"--subject", ""},
		"--name: must be printable: it has the character U": {"--name", "\x1b[2J"},
	} {
		_, err := parse(append(good[:len(good):len(good)], more...), nil)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(usageError))
	}
	_, err := parse(good, nil)
	require.NoError(t, err)
}

func TestKeysOfADatabaseThatIsNotThereAreNotMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "turnd.db")
	err := keysCreateCmd{Database: Database{DatabaseURL: "sqlite://" + file}, Tenant: "acme", Subject: "ann", Scopes: "read"}.
		run(t.Context(), &bytes.Buffer{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "turnd migrate up")
	require.NoFileExists(t, file)
}

func TestAKeyThatIsNamedWronglyIsNotEchoed(t *testing.T) {
	text := access.Mint()
	for _, args := range [][]string{
		{"keys", "revoke", text.Reveal()[:60]}, {"keys", "revoke", text.Reveal() + "x"}, {"keys", "revoke", "--database-url", "sqlite:///no/such.db", "a", text.Reveal()},
		{"keys", "list", text.Reveal()}, {text.Reveal()},
	} {
		var said bytes.Buffer
		require.NotZero(t, run(t.Context(), args, nil, &said))
		require.NotContains(t, said.String(), secretOf(text)[:20])
	}
}

func TestAKeyToRevokeIsReadFromStandardInput(t *testing.T) {
	database := emptyDatabases[engineSQLite](t)
	prints(t, "migrate", "up", "--database-url", database)
	text := mints(t, database, "--tenant", "acme", "--subject", "ann")
	var said bytes.Buffer
	c := keysRevokeCmd{Database: Database{DatabaseURL: database}, Key: "-"}
	require.NoError(t, c.run(t.Context(), strings.NewReader(text.Reveal()+"\n"), &said))
	require.Contains(t, said.String(), text.ID())
	c.Key = access.Mint().ID()
	require.ErrorContains(t, c.run(t.Context(), nil, &said), "no key "+c.Key)
}

// broken takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("closed pipe") }

func TestAKeyThatCouldNotBePrintedIsNamed(t *testing.T) {
	database := emptyDatabases[engineSQLite](t)
	prints(t, "migrate", "up", "--database-url", database)
	err := keysCreateCmd{Database: Database{DatabaseURL: database}, Tenant: "acme", Subject: "ann", Scopes: "read"}.
		run(context.Background(), broken{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "revoke it")
}

func TestWhatIsListedDoesNothingToATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"Ann's büro": "Ann's büro", "": "-", "a\tb": `"a\tb"`, "\x1b[2J": `"\x1b[2J"`, "a\u202eb": `"a\u202eb"`, "a\xff": `"a\xff"`, "a\nb": `"a\nb"`,
	} {
		require.Equal(t, want, shown(text))
	}
}
