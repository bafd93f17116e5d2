package main

import (
	"fmt"
	"strings"
)

// eventsSuffix is the end of the paths that are event streams.
const eventsSuffix = "/events"

const streamText = `Server-sent events. Each has the kind as its name (started, block_started, delta, block_completed, completed, abandoned,
held, restarted, queued or heartbeat), an Event as its data, in one line of JSON, and as its id a cursor: the reply's id, a colon, and
next_offset, with ":end" after it if the event is terminal. A stream that ends without a terminal event goes on with the cursor. The
schema is that of the data of one event.`

// addStreams makes of the paths of FollowReply what they are: a stream with a cursor.
func (d *document) addStreams() error {
	found := 0
	for path, methods := range d.paths {
		if !strings.HasSuffix(path, eventsSuffix) {
			continue
		}
		found++
		get := methods.(object)["get"].(object)
		get["parameters"] = streamParameters(get["parameters"].([]any))
		responses := get["responses"].(object)
		responses["200"] = object{
			"description": streamText,
			"headers":     object{"Cache-Control": object{"description": "no-store, no-transform", "schema": object{"type": "string"}}},
			"content":     object{"text/event-stream": object{"schema": object{"$ref": "#/components/schemas/Event"}}},
		}
		responses["204"] = object{"description": "The cursor is that of a terminal event: there is nothing more, and an EventSource stops."}
	}
	if found == 0 {
		return fmt.Errorf("no path ends in %s", eventsSuffix)
	}
	delete(d.schemas, "FollowReplyResponse")
	return nil
}

// streamParameters are those of the path, and the cursor.
func streamParameters(of []any) []any {
	var out []any
	for _, p := range of {
		if p.(object)["in"] == "path" {
			out = append(out, p)
		}
	}
	return append(out,
		object{"name": "Last-Event-ID", "in": "header", "schema": object{"type": "string"},
			"description": "The id of the last event that was dealt with. An EventSource sends it by itself."},
		object{"name": "cursor", "in": "query", "schema": object{"type": "string"},
			"description": "The same, for whoever can't send the header, which wins."})
}
