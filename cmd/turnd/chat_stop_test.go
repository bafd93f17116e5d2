package main

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// runningUntil is a reply that goes on until it is stopped, and stopping what stops it.
func runningUntil(stopped chan struct{}) fake.Answer {
	return func(c *fake.Call) error {
		if err := c.Send(fake.All(chatStart(1), chatLog[:2])...); err != nil {
			return err
		}
		select {
		case <-stopped:
		case <-c.Done():
			return nil
		}
		return c.Send(fake.Abandoned(chatLog[:2], turnsv1.AbandonReason_ABANDON_REASON_CANCELLED, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, 0))
	}
}

func stopping(stopped chan struct{}) fake.Answer {
	return func(c *fake.Call) error {
		close(stopped)
		return fake.Respond(&turnsv1.CancelReplyResponse{Reply: &turnsv1.Reply{Status: turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED}})(c)
	}
}

func TestAnInterruptStopsTheReplyAndTheChatGoesOn(t *testing.T) {
	stopped := make(chan struct{})
	b := newChat(t, runningUntil(stopped), stopping(stopped), chatWhole())
	b.shown = func(text string) {
		if text == "Hel" && len(b.server.Calls()) == 1 {
			b.interrupt()
		}
	}
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\nmore\n")))
	require.Equal(t, "Hel\nHello\n", b.out)
	require.Contains(t, b.status, "the reply was given up: it was cancelled; to have another one made, type /again")
	calls := b.server.Calls()
	require.Equal(t, chatConversation, calls[1].Cancel.GetConversationId())
	require.Equal(t, calls[0].Turn.GetInput().GetTurnId(), calls[1].Cancel.GetTurnId())
	require.Equal(t, "more", calls[2].Turn.GetInput().GetContent()[0].GetText().GetText(), "a line that came meanwhile is kept")
}

func TestAnInterruptStopsTheReplyOfAMessageToo(t *testing.T) {
	stopped := make(chan struct{})
	b := newChat(t, runningUntil(stopped), stopping(stopped))
	b.shown = func(text string) {
		if text == "Hel" {
			b.interrupt()
		}
	}
	require.EqualError(t, b.run(t.Context(), t, nil, "-m", "hi"),
		"the reply was given up: it was cancelled; to have another one made, start turnd chat and type /again")
	require.Equal(t, "Hel\n", b.out)
}

func TestCtrlCOfARealProcessStopsTheReply(t *testing.T) {
	stopped := make(chan struct{})
	b := newChat(t, runningUntil(stopped), stopping(stopped))
	p := launch(t, nil, "chat", "-m", "hi", "--server", b.server.Addr, "--record", b.record)
	p.until(func() bool { return p.out.String() == "Hel" })
	p.signal(syscall.SIGINT)
	require.Equal(t, 1, p.code())
	require.Contains(t, p.err.String(), "it was cancelled")
}

func TestStopIsObeyedWhileAReplyRuns(t *testing.T) {
	stopped := make(chan struct{})
	b := newChat(t, runningUntil(stopped), stopping(stopped))
	in, typing := io.Pipe()
	b.shown = func(text string) {
		if text == "Hel" {
			go func() {
				_, _ = io.WriteString(typing, "/stop\n")
				_ = typing.Close()
			}()
		}
	}
	go func() { _, _ = io.WriteString(typing, "hi\n") }()
	require.NoError(t, b.run(t.Context(), t, in))
	require.Contains(t, b.status, "it was cancelled")
}

func TestAStopThatIsTypedBeforeTheTurnIsAcceptedIsKeptUntilThen(t *testing.T) {
	stopped, typed := make(chan struct{}), make(chan struct{})
	b := newChat(t, func(c *fake.Call) error {
		<-typed
		return runningUntil(stopped)(c)
	}, stopping(stopped))
	b.told = func(text string) {
		if strings.Contains(text, "once the turn is accepted") {
			close(typed)
		}
	}
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/stop\n")))
	require.Contains(t, b.status, "it was cancelled")
}

func TestASecondInterruptLeavesAndSaysThatTheStopIsNotConfirmed(t *testing.T) {
	var b *chatBed
	b = newChat(t, runningUntil(nil), func(c *fake.Call) error {
		b.interrupt()
		<-c.Done()
		return nil
	})
	b.shown = func(text string) {
		if text == "Hel" {
			b.interrupt()
		}
	}
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\nnever sent\n")))
	require.Contains(t, b.status, "left; nobody has confirmed the stop, so the reply may go on")
	require.Len(t, b.server.Calls(), 2)
}

func TestAStopThatFailsIsToldAndTheNextInterruptLeaves(t *testing.T) {
	b := newChat(t, runningUntil(nil), fake.Fail(fake.Refusal(codes.Unimplemented, "UNIMPLEMENTED", "DO_NOT_RETRY", 0)))
	status := make(chan struct{})
	b.told = func(text string) {
		if strings.Contains(text, "it could not be stopped") {
			close(status)
		}
	}
	b.shown = func(text string) {
		if text == "Hel" {
			b.interrupt()
			go func() {
				<-status
				b.interrupt()
			}()
		}
	}
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n")))
	require.Contains(t, b.status, "Ctrl-C leaves")
}

func TestAStopThatComesTooLateSaysSo(t *testing.T) {
	stopped := make(chan struct{})
	b := newChat(t, func(c *fake.Call) error {
		if err := c.Send(fake.All(chatStart(1), chatLog[:2])...); err != nil {
			return err
		}
		<-stopped
		return c.Send(fake.All(chatLog[2:], fake.Completed(chatLog))...)
	}, stopping(stopped))
	b.shown = func(text string) {
		if text == "Hel" {
			b.interrupt()
		}
	}
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Equal(t, "Hello\n", b.out)
	require.Contains(t, b.status, "it was complete before it could be stopped")
}

func TestAnInterruptBeforeAnyAnswerSaysThatTheTurnIsNotDelivered(t *testing.T) {
	came := func(b **chatBed) fake.Answer {
		return func(c *fake.Call) error {
			(*b).interrupt()
			<-c.Done()
			return nil
		}
	}
	t.Run("message", func(t *testing.T) {
		var b *chatBed
		b = newChat(t, came(&b), chatWhole())
		require.EqualError(t, b.run(t.Context(), t, nil, "-m", "hi"),
			"not delivered yet, as far as can be told from here; to send it, run the same command again")
		require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
		require.Equal(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
	})
	t.Run("lines", func(t *testing.T) {
		var b *chatBed
		b = newChat(t, came(&b), chatWhole())
		require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/again\n")))
		require.Contains(t, b.status, "to send it, type /again")
		require.NotContains(t, b.status, "goes on, and")
		require.Equal(t, "Hello\n", b.out, "the chat is back at its prompt")
		require.Equal(t, b.inputs()[0].GetTurnId(), b.inputs()[1].GetTurnId())
	})
}

func TestAnInterruptAtThePromptLeaves(t *testing.T) {
	b := newChat(t)
	in, typing := io.Pipe()
	defer typing.Close()
	require.NoError(t, b.run(t.Context(), t, &readHook{Reader: in, first: b.interrupt}))
}

func TestAServerThatIsNotThereIsNamedInTheFirstLine(t *testing.T) {
	const address = "127.0.0.1:1" // a port just let go could be another test's by now
	b := newChat(t)
	var told []string
	b.told = func(text string) {
		if strings.Contains(text, "no answer yet") {
			told = append(told, text)
		}
	}
	err := b.run(t.Context(), t, nil, "-m", "hi", "--server", address)
	require.ErrorContains(t, err, "is turnd serve running at "+address+"?; to send it again, run the same command again")
	require.NotContains(t, err.Error(), "goes on")
	for i, line := range told {
		require.Equal(t, i == 0, strings.Contains(line, "is turnd serve running at "+address+"?"), line)
	}
}

func TestAHeldReplyCanBeGivenUp(t *testing.T) {
	b := newChat(t, fake.Play(fake.All(chatStart(1), chatLog[:1], fake.Held(chatLog[:1], time.Second))...),
		fake.Respond(&turnsv1.CancelReplyResponse{Reply: &turnsv1.Reply{
			Status: turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED, AbandonReason: turnsv1.AbandonReason_ABANDON_REASON_CANCELLED}}))
	in, typing := io.Pipe()
	b.told = func(text string) {
		if strings.Contains(text, "type /stop") {
			go func() {
				_, _ = io.WriteString(typing, "/stop\n")
				_ = typing.Close()
			}()
		}
	}
	go func() { _, _ = io.WriteString(typing, "hi\n") }()
	require.NoError(t, b.run(t.Context(), t, in))
	require.Contains(t, b.status, "to ask again later, type /again; to give it up, type /stop")
	require.Contains(t, b.status, "the last reply was given up: it was cancelled")
}

func TestThinkingAndToolCallsAreShownBesideTheReply(t *testing.T) {
	thinking := fake.Block(chatReply, 0, 0, turnsv1.BlockKind_BLOCK_KIND_THINKING, "", "They greet", " me.")
	text := fake.Block(chatReply, 1, 16, turnsv1.BlockKind_BLOCK_KIND_TEXT, "", "Hello")
	tool := fake.Block(chatReply, 2, 23, turnsv1.BlockKind_BLOCK_KIND_TOOL_USE, "weather", `{"city":`, `"Oslo"}`)
	log := fake.All(thinking, text, tool)
	end := fake.Completed(log)
	end.GetCompleted().StopReason = turnsv1.StopReason_STOP_REASON_TOOL_USE
	answer := fake.Play(fake.All(chatStart(1), log, end)...)
	b := newChat(t, answer, answer)
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.Equal(t, "Hello\n", b.out)
	require.Contains(t, b.status, "· thinking: They greet me.\n")
	require.Contains(t, b.status, "· calls the tool weather with {\"city\":\"Oslo\"}\n")
	require.Contains(t, b.status, "the model waits for the result of a tool")
	require.NotContains(t, b.status, "\x1b")
	b.dim = true
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi", "--new"))
	require.Contains(t, b.status, dimOn+"They greet"+dimOff)
	require.Equal(t, "Hello\n", b.out)
}

func TestEndsOfAModelThatAreNotPlainAreTold(t *testing.T) {
	for reason, words := range map[turnsv1.StopReason]string{
		turnsv1.StopReason_STOP_REASON_LENGTH:           "limit of length",
		turnsv1.StopReason_STOP_REASON_REFUSAL:          "declined",
		turnsv1.StopReason_STOP_REASON_CONTENT_FILTER:   "filter",
		turnsv1.StopReason_STOP_REASON_CONTEXT_EXCEEDED: "context window",
		turnsv1.StopReason_STOP_REASON_PAUSE:            "interrupted",
	} {
		end := fake.Completed(chatLog)
		end.GetCompleted().StopReason = reason
		b := newChat(t, fake.Play(fake.All(chatStart(1), chatLog, end)...))
		require.NoError(t, b.run(context.WithoutCancel(t.Context()), t, nil, "-m", "hi"))
		require.Contains(t, b.status, words)
	}
}
