// Command apidoc makes one OpenAPI document of those that a generator made of the wire, a service each, and adds what the wire
// does not say: how to prove who calls, and that following is a stream of server-sent events.
//
//	apidoc -out server/openapi.json FILE...
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "", "the document to write")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

func run(out string, files []string) error {
	if out == "" || len(files) == 0 {
		return errors.New("needs -out and the documents to merge")
	}
	doc := newDocument()
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var part object
		if err := json.Unmarshal(raw, &part); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := doc.add(part); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := doc.finish(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(doc.root, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}
