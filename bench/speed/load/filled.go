package load

import (
	"context"
	"crypto/md5" //nolint:gosec // spreads ids, protects nothing
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Filled says which conversations a database was filled with: copies of one, whose ids are made of its ids and a number.
type Filled struct {
	// Conversations is how many copies there are, numbered from 1.
	Conversations int `json:"conversations"`
	// Conversation and Turns are the ids of the one that was copied, the turns in their order.
	Conversation uuid.UUID   `json:"conversation"`
	Turns        []uuid.UUID `json:"turns"`
	// Since and Until are when the calls of the copies were made.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// CopyID is the id of the nth copy of what has an id.
func CopyID(of uuid.UUID, n int) uuid.UUID {
	return uuid.UUID(md5.Sum(fmt.Appendf(nil, "%s:%d", of, n))) //nolint:gosec // see the import
}

// CopyIDSQL is CopyID as an expression of a column of ids and one of numbers.
func CopyIDSQL(column, n string) string {
	return fmt.Sprintf("md5(%s::text || ':' || %s)::uuid", column, n)
}

// Page is how many rows a page of a list has.
const Page = 50

// pick is one of the copies.
func (f Filled) pick() int { return 1 + rand.IntN(f.Conversations) } //nolint:gosec // which one it is is no secret

// reader is a client of the service over a database that was filled.
type reader struct {
	service
	conversations turnsv1.ConversationServiceClient
	operator      turnsv1.OperatorServiceClient
	filled        Filled
}

// filledShapes are what a client does over and over on tables that were filled.
var filledShapes = map[string]func(*reader, context.Context) (time.Time, error){
	Claim: (*reader).claim, Again: (*reader).again, Say: (*reader).say, Turns: (*reader).turns,
	Conversations: (*reader).list, Ledger: (*reader).calls, Sweep: (*reader).sweep,
}

func filledClients(spec Spec, conns []*grpc.ClientConn) ([]client, error) {
	if spec.Filled == nil || spec.Filled.Conversations < 1 || len(spec.Filled.Turns) == 0 {
		return nil, fmt.Errorf("the load %s needs to know what the database was filled with", spec.Shape)
	}
	do := filledShapes[spec.Shape]
	return each(spec.Clients, func(i int) client {
		conn := conns[i%len(conns)]
		r := &reader{
			service{stub: turnsv1.NewTurnServiceClient(conn), bytes: spec.Deltas * PieceBytes},
			turnsv1.NewConversationServiceClient(conn), turnsv1.NewOperatorServiceClient(conn), *spec.Filled,
		}
		return func(ctx context.Context) (time.Time, error) { return do(r, ctx) }
	}), nil
}

// claim takes a turn in a conversation of its own, and waits for its end, so that it costs the next one nothing. The first piece
// of such a turn is its claim.
func (r *reader) claim(ctx context.Context) (claimed time.Time, err error) {
	in := newInput()
	sub, err := r.stub.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	claimed = time.Now()
	if err != nil {
		return claimed, err
	}
	return claimed, r.finish(ctx, in, sub)
}

// again sends a turn that a copy has once more.
func (r *reader) again(ctx context.Context) (time.Time, error) {
	n, in := r.filled.pick(), newInput()
	in.ConversationId = CopyID(r.filled.Conversation, n).String()
	in.TurnId = CopyID(r.filled.Turns[rand.IntN(len(r.filled.Turns))], n).String() //nolint:gosec // which one it is is no secret
	return r.follow(ctx, in)
}

// say goes on with a copy, whose history goes to the provider.
func (r *reader) say(ctx context.Context) (time.Time, error) {
	in := newInput()
	in.ConversationId = CopyID(r.filled.Conversation, r.filled.pick()).String()
	return r.follow(ctx, in)
}

// turns lists those of a copy.
func (r *reader) turns(ctx context.Context) (none time.Time, err error) {
	id := CopyID(r.filled.Conversation, r.filled.pick()).String()
	got, err := r.stub.ListTurns(ctx, &turnsv1.ListTurnsRequest{ConversationId: id, PageSize: Page})
	if err == nil && len(got.GetEntries()) < len(r.filled.Turns) {
		err = fmt.Errorf("a list has %d entries of %d turns", len(got.GetEntries()), len(r.filled.Turns))
	}
	return none, err
}

// list reads the page of conversations after the first.
func (r *reader) list(ctx context.Context) (none time.Time, err error) {
	in := &turnsv1.ListConversationsRequest{PageSize: Page}
	for range 2 {
		got, err := r.conversations.ListConversations(ctx, in)
		if err != nil {
			return none, err
		}
		if len(got.GetConversations()) != Page {
			return none, fmt.Errorf("a page has %d conversations", len(got.GetConversations()))
		}
		in.PageToken = got.GetNextPageToken()
	}
	return none, nil
}

// calls reads a page of the ledger from any time on.
func (r *reader) calls(ctx context.Context) (none time.Time, err error) {
	// The last of them may be too few for a page.
	within := max(1, r.filled.Until.Sub(r.filled.Since)*4/5)
	from := r.filled.Since.Add(time.Duration(rand.Int64N(int64(within)))) //nolint:gosec // when it is is no secret
	got, err := r.operator.ListProviderCalls(ctx, &turnsv1.ListProviderCallsRequest{
		Filter: &turnsv1.LedgerFilter{StartTime: timestamppb.New(from)}, PageSize: Page,
	})
	if err == nil && len(got.GetCalls()) != Page {
		err = fmt.Errorf("a page has %d calls", len(got.GetCalls()))
	}
	return none, err
}

// sweep has the worker look for replies whose worker is gone, of which there are none.
func (r *reader) sweep(ctx context.Context) (none time.Time, err error) {
	got, err := r.operator.Sweep(ctx, &turnsv1.SweepRequest{})
	if err == nil && len(got.GetReplies()) > 0 {
		err = errors.New("a sweep found a reply whose worker is gone")
	}
	return none, err
}
