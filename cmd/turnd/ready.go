package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ready is the content of the ready file. Web, Ops and Webhooks are empty when there is no such listener.
type ready struct {
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
	Schema   int64    `json:"schema"`
	Listen   string   `json:"listen"`
	Web      string   `json:"web,omitempty"`
	Ops      string   `json:"ops"`
	Webhooks string   `json:"webhooks,omitempty"`
	WorkerID string   `json:"worker_id"`
	Store    string   `json:"store"`
	Models   []string `json:"models"`
}

// print writes the one line of stdout.
func (r ready) print(w io.Writer) error {
	ops := r.Ops
	if ops == "" {
		ops = "-"
	}
	_, err := fmt.Fprintf(w, "turnd ready listen=%s ops=%s store=%s models=%s\n", r.Listen, ops, r.Store, strings.Join(r.Models, ","))
	if err != nil {
		return fmt.Errorf("print ready line: %w", err)
	}
	return nil
}

// write renames a whole file into place, so that a reader sees all of it or nothing. Without a path it does nothing.
func (r ready) write(path string) error {
	if path == "" {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write ready file: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// removeReady takes the ready file away; it may be gone already, or there was to be none.
func removeReady(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	return nil
}
