package server

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// Where an event stream is told how far its reader has come: the header is what EventSource sends when it connects again, and
// the parameter is for whoever can't send headers. The header is newer than the URL, so it wins.
const (
	lastEventID = "Last-Event-ID"
	cursorParam = "cursor"
)

// endMark is the last part of the id of a terminal event.
const endMark = "end"

// eventCursor is the id of an event: a reply, and how far its log has come with the event. That of a terminal event says so,
// for a reader who has had all of the log may still not have been told how it ended.
type eventCursor struct {
	reply  turns.ReplyID
	offset uint32
	ended  bool
}

// String is the cursor as an event's id: "<reply>:<offset>", and with ":end" after it once the stream is over.
func (c eventCursor) String() string {
	id := idText(c.reply.UUID) + ":" + strconv.FormatUint(uint64(c.offset), 10)
	if c.ended {
		id += ":" + endMark
	}
	return id
}

// parseEventCursor reads what String writes, and nothing else.
func parseEventCursor(text string) (c eventCursor, ok bool) {
	id, at, found := strings.Cut(text, ":")
	at, end, ended := strings.Cut(at, ":")
	reply, err := uuid.Parse(id)
	if !found || err != nil || len(id) != len(uuid.Nil.String()) || reply == uuid.Nil || ended && end != endMark {
		return eventCursor{}, false
	}
	offset, err := strconv.ParseUint(at, 10, 32)
	if err != nil || at != strconv.FormatUint(offset, 10) {
		return eventCursor{}, false
	}
	return eventCursor{turns.ReplyID{UUID: reply}, uint32(offset), ended}, true
}

// cursorOf is the cursor of a request, nil without one.
func cursorOf(r *http.Request) (*eventCursor, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errQuery
	}
	for name := range query {
		if name != cursorParam {
			return nil, invalidField(name, "is no parameter of an event stream, which has "+cursorParam+" alone")
		}
	}
	field, values := lastEventID, r.Header.Values(lastEventID)
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		field, values = cursorParam, query[cursorParam]
	}
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil, nil
	}
	if c, ok := parseEventCursor(values[0]); ok && len(values) == 1 {
		return &c, nil
	}
	return nil, &turns.Error{Code: turns.CodeInvalidCursor, Field: field,
		Problem: "is not the id of an event, which is a reply's id, a colon and an offset; leave it out to begin at the start"}
}
