package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// Turn names a turn to follow.
type Turn struct {
	ConversationID string `json:"conversationId"`
	TurnID         string `json:"turnId"`
}

// Valid reports whether both ids are UUIDs. They become the names of files, so nothing else will do.
func (t Turn) Valid() bool {
	return uuid.Validate(t.ConversationID) == nil && uuid.Validate(t.TurnID) == nil
}

// Record is a turn that is followed, and how far: Text is what the reply's log says up to Offset.
type Record struct {
	Turn
	ReplyID string `json:"replyId,omitempty"`
	Offset  uint32 `json:"offset,omitempty"`
	Text    string `json:"text,omitempty"`
}

// Records is a folder with a file for each turn that is followed.
type Records string

// Save writes a record beside the old one and renames it, so that a crash leaves one of the two whole.
func (r Records) Save(record Record) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	if err := os.MkdirAll(string(r), 0o700); err != nil {
		return fmt.Errorf("make the folder of records: %w", err)
	}
	path := r.path(record.Turn)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}

// Drop removes the record of a turn.
func (r Records) Drop(turn Turn) error {
	if err := os.Remove(r.path(turn)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop a record: %w", err)
	}
	return nil
}

// Load reads what an earlier process left.
func (r Records) Load() ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(string(r), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	var records []Record
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		var record Record
		if err := json.Unmarshal(data, &record); err != nil || !record.Valid() {
			return nil, fmt.Errorf("%s is no record; remove it to go on without", path)
		}
		records = append(records, record)
	}
	return records, nil
}

func (r Records) path(turn Turn) string { return filepath.Join(string(r), turn.TurnID+".json") }
