package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns/access"
)

const (
	chatConversation = "0190b6a0-0000-7000-8000-00000000c000"
	chatReply        = "0190b6a0-0000-7000-8000-0000000000a1"
	chatSecond       = "0190b6a0-0000-7000-8000-0000000000a2"
)

var chatLog = fake.Text(chatReply, "Hel", "lo")

// chatBed is a server and what a run of chat needs.
type chatBed struct {
	server     *fake.Server
	record     string
	interrupts chan os.Signal
	shown      func(text string) // called with each piece that goes to standard output; may be nil
	told       func(text string) // the same for the status
	dim        bool
	out        string
	status     string
}

// interrupt is the user pressing Ctrl-C.
func (b *chatBed) interrupt() { b.interrupts <- os.Interrupt }

// screenOf is a standard output that tells what it shows.
type screenOf struct {
	text  bytes.Buffer
	shown func(string)
}

func (s *screenOf) Write(p []byte) (int, error) {
	if s.shown != nil {
		s.shown(string(p))
	}
	return s.text.Write(p)
}

func newChat(t *testing.T, answers ...fake.Answer) *chatBed {
	t.Helper()
	return &chatBed{server: fake.Start(t, answers...), record: filepath.Join(t.TempDir(), "chat.json"), interrupts: make(chan os.Signal, 2)}
}

// run runs chat with flags and what the user types; nil input is -m.
func (b *chatBed) run(ctx context.Context, t *testing.T, in io.Reader, flags ...string) error {
	t.Helper()
	var c cli
	parser, err := newParser(&c)
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"chat", "--server", b.server.Addr, "--record", b.record}, flags...))
	require.NoError(t, err)
	out, status := screenOf{shown: b.shown}, screenOf{shown: b.told}
	err = c.Chat.run(ctx, chatEnds{in: in, out: &out, status: &status, dim: b.dim, interrupts: b.interrupts, wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	b.out, b.status = out.text.String(), status.text.String()
	return err
}

func (b *chatBed) inputs() (out []*turnsv1.TurnInput) {
	for _, c := range b.server.Calls() {
		out = append(out, c.Turn.GetInput())
	}
	return out
}

func chatStart(r turnsv1.DeliveryResult) []*turnsv1.Event {
	return fake.All(fake.Accepted(chatConversation, "", r), fake.Started(chatReply, 1))
}

func chatWhole() fake.Answer {
	return fake.Play(fake.All(chatStart(turnsv1.DeliveryResult_DELIVERY_RESULT_NEW), chatLog, fake.Completed(chatLog))...)
}

func chatGivenUp(advice turnsv1.RetryAdvice) fake.Answer {
	return fake.Play(fake.All(chatStart(turnsv1.DeliveryResult_DELIVERY_RESULT_NEW), chatLog[:2],
		fake.Abandoned(chatLog[:2], turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, advice, 0))...)
}

func chatAnew() fake.Answer {
	log := fake.Text(chatSecond, "Anew")
	return fake.Play(fake.All(fake.Accepted(chatConversation, "", turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED),
		fake.Restarted(chatReply, chatSecond), fake.Started(chatSecond, 2), log, fake.Completed(log))...)
}

func TestChatReadsAKeyThatAPipeGivesOnce(t *testing.T) {
	b := newChat(t, chatWhole())
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	_, err = w.WriteString(access.Mint().Reveal())
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi", "--key-file", fmt.Sprintf("/dev/fd/%d", r.Fd())))
	require.Equal(t, "Hello\n", b.out)
}

func TestChatPrintsNothingButTheReplyToStandardOutput(t *testing.T) {
	b := newChat(t, chatWhole())
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi", "--model", "demo", "--tenant", "acme"))
	require.Equal(t, "Hello\n", b.out)
	require.Empty(t, b.status)
	in := b.inputs()[0]
	require.Equal(t, "hi", in.GetContent()[0].GetText().GetText())
	require.Equal(t, "demo", in.GetOptions().GetModel())
	require.Equal(t, []string{"acme"}, b.server.Calls()[0].Header.Get("x-turnd-tenant"))
}

func TestChatGoesOnInTheConversationOfTheLastTime(t *testing.T) {
	b := newChat(t, chatWhole(), chatWhole(), chatWhole(), chatWhole())
	other := "0190b6a0-0000-7000-8000-00000000c001"
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "one"))
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "two"))
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "three", "--new"))
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "four", "--conversation", other))
	var where []string
	for _, in := range b.inputs() {
		where = append(where, in.GetConversationId())
	}
	require.Equal(t, []string{"", chatConversation, "", other}, where)
}

func TestARepeatedCommandGoesOnWithTheTurnWhoseAnswerWasLost(t *testing.T) {
	lost := fake.Fail(fake.Refusal(codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT", time.Hour))
	b := newChat(t, lost, chatWhole(), chatWhole())
	err := b.run(t.Context(), t, nil, "-m", "hi")
	require.ErrorContains(t, err, "the server asks to wait 1h0m0s, then run the same command again")
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Contains(t, b.status, "going on with the turn that was sent before")
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	in := b.inputs()
	require.Equal(t, in[0].GetTurnId(), in[1].GetTurnId())
	require.NotEqual(t, in[1].GetTurnId(), in[2].GetTurnId(), "once it is answered, the same words are a new turn")
}

func TestOtherWordsAreAnotherTurn(t *testing.T) {
	lost := fake.Fail(fake.Refusal(codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT", time.Hour))
	b := newChat(t, lost, chatWhole())
	require.Error(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hello"))
	require.NotEqual(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
}

func TestAReplyThatWasGivenUpFailsTheCommandAndTheSameCommandTriesAgain(t *testing.T) {
	b := newChat(t, chatGivenUp(turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW), chatAnew())
	err := b.run(t.Context(), t, nil, "-m", "hi")
	require.EqualError(t, err, "the reply was given up: the server was shut down; another attempt may cost once more; to make it, run the same command again")
	require.Equal(t, "Hel\n", b.out)
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Equal(t, "Anew\n", b.out)
	require.Equal(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
}

func TestAHeldReplyFailsTheCommandAndSaysWhatToDo(t *testing.T) {
	b := newChat(t, fake.Play(fake.All(chatStart(1), chatLog[:1], fake.Held(chatLog[:1], time.Second))...), chatWhole())
	err := b.run(t.Context(), t, nil, "-m", "hi")
	require.ErrorContains(t, err, "an operator has to find out; to ask again later, run the same command again")
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Equal(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
}

func TestARestartIsToldAndBeginsOnALineOfItsOwn(t *testing.T) {
	b := newChat(t, fake.Play(fake.All(chatStart(1), chatLog[:2])...), chatAnew())
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Equal(t, "Hel\nAnew\n", b.out)
	require.Contains(t, b.status, "the reply above was cut off (the server that was making it is gone); it begins anew")
}

func TestARefusalIsToldInPlainWords(t *testing.T) {
	for reason, words := range map[string]string{
		"TURN_ID_REUSED":       "say it anew",
		"UNKNOWN_MODEL":        "sending it again does not help",
		"WRONG_STATE":          "to have another one made, start turnd chat and type /again",
		"CONVERSATION_DELETED": "the conversation was deleted; open a new one",
		"CONVERSATION_BUSY":    "another reply of this conversation is still running",
	} {
		advice := map[string]string{"TURN_ID_REUSED": "NEW_ID", "WRONG_STATE": "REGENERATE"}[reason]
		if advice == "" {
			advice = "DO_NOT_RETRY"
		}
		b := newChat(t, fake.Fail(fake.Refusal(codes.FailedPrecondition, reason, advice, 0)))
		require.ErrorContains(t, b.run(t.Context(), t, nil, "-m", "hi"), words)
		require.Empty(t, b.out)
	}
}

func TestEachLineIsATurnAndCommandsAreObeyed(t *testing.T) {
	b := newChat(t, chatWhole(), chatGivenUp(turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW), chatAnew(), chatWhole())
	typed := "/again\none\n\n  two \n/again\n/new\nthree\n/quit\nfour\n"
	require.NoError(t, b.run(t.Context(), t, strings.NewReader(typed)))
	require.Equal(t, "Hello\nHel\nAnew\nHello\n", b.out)
	require.Contains(t, b.status, "to make it, type /again")
	require.Contains(t, b.status, "there is no turn yet that this could be about")
	var said, where []string
	for _, in := range b.inputs() {
		said, where = append(said, in.GetContent()[0].GetText().GetText()), append(where, in.GetConversationId())
	}
	require.Equal(t, []string{"one", "two", "two", "three"}, said)
	require.Equal(t, []string{"", chatConversation, chatConversation, ""}, where)
}

func TestAgainGoesOnWithALostStream(t *testing.T) {
	lost := fake.Fail(fake.Refusal(codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT", time.Hour))
	b := newChat(t, lost, chatGivenUp(turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE))
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/again\n")))
	require.Equal(t, "Hel\n", b.out)
	require.Equal(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
	require.Contains(t, b.status, "to have another one made, type /again")
}

func TestLeavingSaysThatTheReplyGoesOnAndTheNextStartShowsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	b := newChat(t, func(c *fake.Call) error {
		defer close(gone)
		return fake.Hang(fake.All(chatStart(1), chatLog[:2])...)(c)
	}, chatWhole())
	b.shown = func(string) { cancel() }
	require.NoError(t, b.run(ctx, t, strings.NewReader("hi\n")))
	<-gone
	require.Contains(t, b.status, "left; the reply goes on, and turnd chat shows it when started again")
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("")))
	require.Equal(t, "Hello\n", b.out, "from its beginning")
	require.Contains(t, b.status, "going on with the reply that was left")
	require.Equal(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
	require.Equal(t, "hi", b.inputs()[1].GetContent()[0].GetText().GetText())
}

func TestAReplyThatWasLeftDoesNotFollowIntoANewConversation(t *testing.T) {
	lost := fake.Fail(fake.Refusal(codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT", time.Hour))
	b := newChat(t, lost)
	require.Error(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.NoError(t, b.run(t.Context(), t, strings.NewReader(""), "--new"))
	require.Len(t, b.server.Calls(), 1)
}

func TestLeavingAtThePromptEndsTheChat(t *testing.T) {
	b := newChat(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	defer typing.Close()
	leave := &readHook{Reader: in, first: cancel}
	require.NoError(t, b.run(ctx, t, leave))
	require.Empty(t, b.server.Calls())
}

// readHook tells of the first read.
type readHook struct {
	io.Reader
	first func()
}

func (r *readHook) Read(p []byte) (int, error) {
	r.first()
	return r.Reader.Read(p)
}

func TestALineThatIsTooLongIsAnError(t *testing.T) {
	b := newChat(t)
	require.ErrorContains(t, b.run(t.Context(), t, strings.NewReader(strings.Repeat("x", 5<<20))), "read a line")
}

func TestFlagsOfChatThatMakeNoSenseAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"--conversation: must be a UUID":                     {"chat", "--conversation", "x"},
		`--server: "localhost" is not host:port`:             {"chat", "--server", "localhost"},
		`--server: "http://127.0.0.1:8080" is not host:port`: {"chat", "--server", "http://127.0.0.1:8080"},
		"--new: can't go with --conversation":                {"chat", "--new", "--conversation", chatConversation},
	} {
		_, err := parse(args, nil)
		require.ErrorContains(t, err, want)
		var usage usageError
		require.ErrorAs(t, err, &usage)
	}
}

func chatAt(server, tenant string) chatCmd {
	return chatCmd{dialFlags: dialFlags{Server: server}, Tenant: tenant}
}

func TestTheRecordOfAChatIsKeptPerServerTenantAndKey(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	paths := map[string]bool{}
	key := proof(access.Mint().Reveal())
	for _, p := range []proof{"", key, proof(access.Mint().Reveal())} {
		for _, c := range []chatCmd{chatAt("a:1", ""), chatAt("b:1", ""), chatAt("a:1", "x")} {
			path, err := c.recordPath(p)
			require.NoError(t, err)
			require.Equal(t, "/state/turnd", filepath.Dir(path))
			paths[path] = true
		}
	}
	require.Len(t, paths, 9)
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/x")
	path, err := (&chatCmd{}).recordPath("")
	require.NoError(t, err)
	require.Equal(t, "/home/x/.local/state/turnd", filepath.Dir(path))
	t.Setenv("HOME", "")
	_, err = (&chatCmd{}).recordPath("")
	require.ErrorContains(t, err, "--record")
}

func TestAWaitThatAPersonNoticesIsTold(t *testing.T) {
	b := newChat(t, fake.Fail(fake.Refusal(codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT", 2*time.Second)), chatWhole())
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Equal(t, "· no answer yet, trying again in 2s: CONVERSATION_BUSY: refused for a test\n", b.status)
}
