package main

import (
	"bytes"
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// jsonFlag asks for a form that programs read.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON instead of a table; what the service answers is as REST gives it."`
}

// printJSON prints a message as REST gives it, on one line. protojson alone puts blanks at random places, so that nobody
// compares bytes; here somebody may.
func printJSON(out io.Writer, m proto.Message) error {
	raw, err := protojson.MarshalOptions{EmitDefaultValues: false}.Marshal(m)
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	compact.WriteByte('\n')
	_, err = compact.WriteTo(out)
	return err
}

// printEach prints messages one a line.
func printEach[M proto.Message](out io.Writer, messages []M) error {
	for _, m := range messages {
		if err := printJSON(out, m); err != nil {
			return err
		}
	}
	return nil
}
