package bustest

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

// faults are the chances, in hundredths, of what happens to a hint on its way.
type faults struct{ lose, repeat, hold, forge int }

// faulty is a bus that loses, repeats, reorders and makes up what it delivers.
type faulty struct {
	live.Bus
	faults
	random *rand.Rand
}

func newFaulty(bus live.Bus, f faults, seed uint64) faulty {
	return faulty{Bus: bus, faults: f, random: rand.New(rand.NewPCG(seed, 1))}
}

// Run implements live.Bus.
func (b faulty) Run(ctx context.Context, h live.Handler) error {
	return b.Bus.Run(ctx, &faultyHandler{Handler: h, faulty: b})
}

type faultyHandler struct {
	live.Handler
	faulty

	mu   sync.Mutex
	held []live.Hint
}

// Take implements live.Handler.
func (h *faultyHandler) Take(hints []live.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []live.Hint
	for _, hint := range hints {
		if h.happens(h.forge) {
			out = append(out, h.forgery(hint))
		}
		switch {
		case h.happens(h.lose):
		case h.happens(h.hold) && len(h.held) < 64:
			h.held = append(h.held, hint)
		case h.happens(h.repeat):
			out = append(out, hint, hint)
		default:
			out = append(out, hint)
		}
	}
	if h.happens(h.hold) {
		out = append(out, h.held...)
		h.held = nil
	}
	h.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	h.Handler.Take(out)
}

func (h *faultyHandler) happens(chance int) bool { return h.random.IntN(100) < chance }

// forgery makes a false hint from a true one. It does not hold other bytes under the true epoch: those can't be told from
// the true ones before they are stored.
func (h *faultyHandler) forgery(hint live.Hint) live.Hint {
	lie := turns.Piece{Kind: turns.KindText, Text: "lie"}
	switch h.random.IntN(6) {
	case 0:
		hint.Reply = turns.ReplyID{UUID: uuid.New()}
	case 1:
		hint.Epoch, hint.Pieces = hint.Epoch+1, []turns.Piece{lie}
	case 2:
		hint.Epoch, hint.Pieces = hint.Epoch-1, []turns.Piece{lie}
	case 3:
		hint.Length = h.random.Uint32()
	case 4:
		hint.Ended, hint.Stop = true, true
	default:
		lie.Block, hint.From = 1<<20, h.random.Uint32()
		hint.Pieces = []turns.Piece{lie}
	}
	return hint
}
