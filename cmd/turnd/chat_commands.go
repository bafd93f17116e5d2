package main

import (
	"context"
	"fmt"
	"strings"
)

// chatCommand is one of those that a line can give.
type chatCommand struct {
	name, argument, help string
	run                  func(t *talk, ctx context.Context, argument string) (done bool, err error)
}

// chatCommands are all of them, in the order of the help.
func chatCommands() []chatCommand {
	return []chatCommand{
		{"/again", "", "go on with a turn that was lost or failed; after a reply, have another one made", (*talk).again},
		{"/pick", "[N]", "list the replies to the last turn, or go back to one of them", (*talk).pick},
		{"/stop", "", "stop the reply that is running, as Ctrl-C does", (*talk).stopReply},
		{"/new", "", "begin a new conversation with the next line", (*talk).openNew},
		{"/help", "", "list the commands", (*talk).help},
		{"/quit", "", "end, as Ctrl-D does", func(*talk, context.Context, string) (bool, error) { return true, nil }},
	}
}

// obey does what a line says.
func (t *talk) obey(ctx context.Context, line string) (done bool, err error) {
	switch {
	case line == "":
		return false, nil
	case strings.HasPrefix(line, "//"):
		line = line[1:]
	case strings.HasPrefix(line, "/"):
		return t.command(ctx, line)
	}
	s, err := t.client.Send(ctx, t.input(line))
	if err != nil {
		return true, err
	}
	return t.watch(ctx, sent(s))
}

// command runs a command. A line that looks like one and is none is not sent: it was meant for chat, not for the model.
func (t *talk) command(ctx context.Context, line string) (done bool, err error) {
	name, argument, _ := strings.Cut(line, " ")
	argument = strings.TrimSpace(argument)
	for _, c := range chatCommands() {
		switch {
		case c.name != name:
		case argument != "" && c.argument == "":
			t.say(name + " takes nothing after it")
			return false, nil
		default:
			return c.run(t, ctx, argument)
		}
	}
	t.say(fmt.Sprintf("there is no command %q; to send a line that begins with /, type // instead", name))
	return t.help(ctx, "")
}

func (t *talk) help(context.Context, string) (bool, error) {
	for _, c := range chatCommands() {
		t.say(fmt.Sprintf("%-10s %s", strings.TrimSpace(c.name+" "+c.argument), c.help))
	}
	t.say(fmt.Sprintf("%-10s %s", "//...", "send a line that begins with /"))
	return false, nil
}

func (t *talk) openNew(context.Context, string) (bool, error) {
	t.conversation, t.last = "", nil
	t.say("a new conversation begins with the next line")
	return false, nil
}
