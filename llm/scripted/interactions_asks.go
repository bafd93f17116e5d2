package scripted

import (
	"net/http"
	"strconv"
	"strings"
)

// AskDelete is for a reply to be forgotten.
const AskDelete Ask = "delete"

// interactionAsks are what the Interactions wire answers without generating.
var interactionAsks = []askRoute{
	{"GET /v1beta/interactions/{id}", wireInteractions, AskRetrieve, (*exchange).retrieveInteraction},
	{"POST /v1beta/interactions/{id}/cancel", wireInteractions, AskCancel, (*exchange).cancelInteraction},
	{"DELETE /v1beta/interactions/{id}", wireInteractions, AskDelete, (*exchange).deleteInteraction},
}

func (x *exchange) noInteraction() End {
	return x.refuse(refusal{status: http.StatusNotFound, message: "Requested entity was not found."}, nil)
}

// retrieveInteraction shows it, or streams it behind the event that is named.
func (x *exchange) retrieveInteraction(q question) End {
	if q.about == nil {
		return x.noInteraction()
	}
	if !x.req.stream {
		return x.tell(http.StatusOK, x.snapshot(q.about.gen))
	}
	after := -1
	if id := q.URL.Query().Get("last_event_id"); id != "" {
		digits, is := strings.CutPrefix(id, interactionEvent)
		n, err := strconv.Atoi(digits)
		if !is || err != nil || n < 0 {
			return x.refuse(refusal{status: http.StatusBadRequest, message: "last_event_id: not an event of this interaction"}, nil)
		}
		after = n
	}
	return x.resume(q.about, after)
}

// cancelInteraction ends one that runs in the background; one that is over is shown as it is.
func (x *exchange) cancelInteraction(q question) End {
	switch {
	case q.about == nil:
		return x.noInteraction()
	case !q.about.background:
		return x.refuse(refusal{status: http.StatusBadRequest, message: "only a background interaction can be cancelled"}, nil)
	}
	q.about.gen.cancel(x.ctx)
	return x.tell(http.StatusOK, x.snapshot(q.about.gen))
}

func (x *exchange) deleteInteraction(q question) End {
	if q.about == nil {
		return x.noInteraction()
	}
	x.era.kept.forget(q.about)
	return x.tell(http.StatusOK, []byte("{}"))
}

// forget makes a reply unknown to whoever asks.
func (k *kept) forget(r *keptReply) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, r.gen.id)
}
