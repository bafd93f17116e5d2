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
	JSON bool `name:"json" help:"Print JSON, as REST gives it, instead of a table."`
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
