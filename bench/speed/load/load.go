package load

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	turnd "github.com/turnd/turnd/client"
)

// Shapes: what a client does over and over.
const (
	// Turn, Submit and Replay are of the service: a turn with its reply streamed in the same call; a turn that is submitted, and
	// its reply followed from the end; a turn that is finished, sent again.
	Turn   = "turn"
	Submit = "submit"
	Replay = "replay"
	// Relay, Calls and Lookup are of the floors' service.
	Relay  = "relay"
	Calls  = "calls"
	Lookup = "lookup"
	// Direct reads the provider itself.
	Direct = "direct"
	// Commits and Group keep turns in a database.
	Commits = "commits"
	Group   = "group"
	// Mix is of the service too: clients of all kinds, some of which cancel or leave, and which rest.
	Mix = "mix"
	// Those that follow are of a service whose tables were filled. Claim: a turn in a conversation of its own is submitted; Again: a
	// turn that is there is sent again; Say: a conversation that is there goes on. Then lists of 50: the turns of a conversation, two
	// pages of conversations, the ledger from some time on. Sweep: one that finds nothing.
	Claim         = "claim"
	Again         = "again"
	Say           = "say"
	Turns         = "list_turns"
	Conversations = "list_conversations"
	Ledger        = "list_calls"
	Sweep         = "sweep"
)

// Run plays a load to its end.
func Run(ctx context.Context, spec Spec) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients, end, err := clientsOf(ctx, spec)
	if err != nil {
		return Result{}, err
	}
	defer end()
	return run(ctx, spec, clients)
}

// clientsOf makes the clients of a shape, and what ends their connections.
func clientsOf(ctx context.Context, spec Spec) (clients []client, end func(), err error) {
	switch spec.Shape {
	case Direct:
		return directClients(spec), func() {}, nil
	case Commits, Group:
		return commitClients(ctx, spec)
	}
	conns, end, err := dial(spec)
	if err != nil {
		return nil, nil, err
	}
	switch spec.Shape {
	case Turn, Submit, Replay:
		if clients, err = serviceClients(ctx, spec, conns); err != nil {
			end()
		}
		return clients, end, err
	case Mix:
		return mixClients(spec, conns), end, nil
	case Relay, Calls, Lookup:
		return bareClients(spec, conns), end, nil
	}
	if filledShapes[spec.Shape] != nil {
		if clients, err = filledClients(spec, conns); err != nil {
			end()
		}
		return clients, end, err
	}
	end()
	return nil, nil, fmt.Errorf("there is no load %q", spec.Shape)
}

func dial(spec Spec) (conns []*grpc.ClientConn, end func(), err error) {
	end = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	for i := range max(1, spec.Conns, len(spec.Targets)) {
		target := spec.Target
		if n := len(spec.Targets); n > 0 {
			target = spec.Targets[i%n]
		}
		conn, err := turnd.Dial(target)
		if err != nil {
			end()
			return nil, nil, err
		}
		conns = append(conns, conn)
	}
	return conns, end, nil
}
