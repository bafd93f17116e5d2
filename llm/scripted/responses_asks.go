package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// responsesAsks are what the Responses wire answers without generating.
var responsesAsks = []askRoute{
	{"GET /v1/responses/{id}", wireResponses, AskRetrieve, (*exchange).retrieveResponse},
	{"POST /v1/responses/{id}/cancel", wireResponses, AskCancel, (*exchange).cancelResponse},
	{"POST /v1/conversations", wireResponses, AskSession, (*exchange).openConversation},
	{"GET /v1/conversations/{id}/items", wireResponses, AskList, (*exchange).listItems},
}

func notFound(what, id string) refusal {
	return refusal{status: http.StatusNotFound, message: fmt.Sprintf("%s with id '%s' not found", what, id)}
}

func (x *exchange) retrieveResponse(q question) End {
	r := q.about
	if r == nil {
		return x.refuse(notFound("response", q.PathValue("id")), nil)
	}
	if !x.req.stream {
		return x.tell(http.StatusOK, x.snapshot(r.gen))
	}
	after := -1
	if text := q.URL.Query().Get("starting_after"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return x.refuse(refusal{status: http.StatusBadRequest, message: "starting_after: not a number"}, nil)
		}
		after = n
	}
	if !r.background || !r.streamed {
		message := "this response cannot be streamed because it was not created with background=true and stream=true"
		return x.refuse(refusal{status: http.StatusBadRequest, message: message}, nil)
	}
	return x.resume(r, after)
}

// cancelResponse may be asked any number of times; the end of the response stands.
func (x *exchange) cancelResponse(q question) End {
	r := q.about
	if r == nil {
		return x.refuse(notFound("response", q.PathValue("id")), nil)
	}
	if !r.background {
		return x.refuse(refusal{status: http.StatusBadRequest, message: "only a background response can be cancelled"}, nil)
	}
	r.gen.cancel(x.ctx)
	return x.tell(http.StatusOK, x.snapshot(r.gen))
}

func (x *exchange) openConversation(q question) End {
	var in struct {
		Metadata map[string]string `json:"metadata"`
	}
	if len(q.body) > 0 && json.Unmarshal(q.body, &in) != nil {
		return x.refuse(refusal{status: http.StatusBadRequest, message: "the body is not valid JSON of this endpoint"}, nil)
	}
	id := x.ids("conv_")
	x.era.kept.openSession(id)
	return x.tell(http.StatusOK, encode(struct {
		ID       string            `json:"id"`
		Object   string            `json:"object"`
		Created  int64             `json:"created_at"`
		Metadata map[string]string `json:"metadata"`
	}{id, "conversation", x.era.book.now().Unix(), in.Metadata}))
}

// itemPage is a part of what was said in a conversation.
type itemPage struct {
	Object  string `json:"object"`
	Data    []any  `json:"data"`
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
	HasMore bool   `json:"has_more"`
}

// listItems shows the replies that are whole, each behind its input. As at the vendor the newest come first unless asked
// otherwise, 20 at a time.
func (x *exchange) listItems(q question) End {
	replies, ok := x.era.kept.inSession(q.PathValue("id"))
	if !ok {
		return x.refuse(notFound("conversation", q.PathValue("id")), nil)
	}
	values := q.URL.Query()
	limit := 20
	if text := values.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return x.refuse(refusal{status: http.StatusBadRequest, message: "limit: not between 1 and 100"}, nil)
		}
		limit = n
	}
	all, ids := x.itemsOf(replies)
	if values.Get("order") != "asc" {
		slices.Reverse(all)
		slices.Reverse(ids)
	}
	from := slices.Index(ids, values.Get("after")) + 1
	page := itemPage{Object: "list", Data: all[from:]}
	if page.HasMore = len(page.Data) > limit; page.HasMore {
		page.Data = page.Data[:limit]
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = ids[from], ids[from+n-1]
	}
	return x.tell(http.StatusOK, encode(page))
}

// itemsOf are the items of replies that the conversation has by now, and their ids.
func (x *exchange) itemsOf(replies []*keptReply) (all []any, ids []string) {
	all = []any{}
	endpoint, now := x.era.program().endpoint, x.era.book.now()
	for _, r := range replies {
		if o, _, _ := r.gen.now(); o != outcomeWhole || !r.wasSettled(endpoint, now) {
			continue
		}
		for i, raw := range r.input {
			id := fmt.Sprintf("in_%s_%d", r.gen.id, i)
			all, ids = append(all, inputItem(raw, id)), append(ids, id)
		}
		var whole struct {
			Output []map[string]any `json:"output"`
		}
		if err := json.Unmarshal(x.snapshot(r.gen), &whole); err != nil {
			panic("scripted: a response does not decode: " + err.Error())
		}
		for _, item := range whole.Output {
			id, _ := item["id"].(string)
			all, ids = append(all, item), append(ids, id)
		}
	}
	return all, ids
}

// inputItem is an item of a request as a conversation keeps it.
func inputItem(raw json.RawMessage, id string) map[string]any {
	var item map[string]any
	_ = json.Unmarshal(raw, &item) // it was read as an item before
	item["id"], item["status"] = id, "completed"
	if item["type"] == nil {
		item["type"] = "message"
	}
	if text, ok := item["content"].(string); ok {
		kind := "input_text"
		if item["role"] == "assistant" {
			kind = "output_text"
		}
		item["content"] = []any{map[string]any{"type": kind, "text": text}}
	}
	return item
}
