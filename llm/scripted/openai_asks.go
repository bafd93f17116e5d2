package scripted

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// openaiAsks are what Chat Completions answers without generating: completions that were stored.
var openaiAsks = []askRoute{
	{"GET /v1/chat/completions", wireOpenAI, AskList, (*exchange).listCompletions},
	{"GET /v1/chat/completions/{id}", wireOpenAI, AskRetrieve, (*exchange).retrieveCompletion},
}

func (x *exchange) retrieveCompletion(q question) End {
	if q.about == nil {
		return x.refuse(notFound("completion", q.PathValue("id")), nil)
	}
	return x.tell(http.StatusOK, x.snapshot(q.about.gen))
}

// listCompletions shows completions of a model and of metadata, the oldest first unless asked otherwise, 20 at a time.
func (x *exchange) listCompletions(q question) End {
	values := q.URL.Query()
	limit, err := strconv.Atoi(values.Get("limit"))
	if values.Has("limit") && (err != nil || limit < 1 || limit > 100) {
		return x.refuse(refusal{status: http.StatusBadRequest, message: "limit: not between 1 and 100"}, nil)
	}
	if !values.Has("limit") {
		limit = 20
	}
	var page struct {
		Object  string            `json:"object"`
		Data    []json.RawMessage `json:"data"`
		FirstID string            `json:"first_id"`
		LastID  string            `json:"last_id"`
		HasMore bool              `json:"has_more"`
	}
	page.Object, page.Data = "list", []json.RawMessage{}
	found := completionsOf(x.era.kept.list(wireOpenAI, x.era.program().endpoint, x.era.book.now()), values)
	if page.HasMore = len(found) > limit; page.HasMore {
		found = found[:limit]
	}
	for _, r := range found {
		page.Data = append(page.Data, x.snapshot(r.gen))
	}
	if n := len(found); n > 0 {
		page.FirstID, page.LastID = found[0].gen.id, found[n-1].gen.id
	}
	return x.tell(http.StatusOK, encode(page))
}

// completionsOf are those that a query is for, from the place on that it names.
func completionsOf(all []*keptReply, values url.Values) (found []*keptReply) {
	model, after := values.Get("model"), values.Get("after")
	if values.Get("order") == "desc" {
		slices.Reverse(all)
	}
	if at := slices.IndexFunc(all, func(r *keptReply) bool { return r.gen.id == after }); after != "" {
		all = all[at+1:]
	}
	for _, r := range all {
		if (model == "" || model == r.gen.req.model) && hasMetadata(r.metadata, values) {
			found = append(found, r)
		}
	}
	return found
}

// hasMetadata reports whether metadata holds all that a query names as metadata[name]=value.
func hasMetadata(metadata map[string]string, values url.Values) bool {
	for field := range maps.Keys(values) {
		name, is := strings.CutPrefix(field, "metadata[")
		if is && metadata[strings.TrimSuffix(name, "]")] != values.Get(field) {
			return false
		}
	}
	return true
}
