package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// recordVersion is the version of the file's format.
const recordVersion = 1

// FileRecord keeps a record in a file of its own, readable by its owner alone, since it holds what the user wrote. It is
// replaced by rename, so that a crash leaves the old one or the new one whole. Clear removes the turn and keeps the id of
// its conversation, for a program that wants to go on there. Two processes must not share a file: the later write wins.
type FileRecord struct{ path string }

// recordFile is the form of the file.
type recordFile struct {
	Version        int     `json:"version"`
	ConversationID string  `json:"conversation_id,omitempty"`
	Turn           *Record `json:"turn,omitempty"`
}

// NewFileRecord names the file, which need not exist; its folder is made at the first Save.
func NewFileRecord(path string) *FileRecord { return &FileRecord{path: path} }

// Load implements RecordStore.
func (f *FileRecord) Load(context.Context) (*Record, error) {
	file, err := f.read()
	if err != nil {
		return nil, err
	}
	return file.Turn, nil
}

// Save implements RecordStore.
func (f *FileRecord) Save(_ context.Context, r *Record) error {
	return f.write(recordFile{Version: recordVersion, ConversationID: r.ConversationID, Turn: r})
}

// Clear implements RecordStore.
func (f *FileRecord) Clear(context.Context) error {
	file, err := f.read()
	if err != nil && !errors.Is(err, ErrRecordCorrupt) {
		return err
	}
	if file.ConversationID == "" {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the record: %w", err)
		}
		return nil
	}
	return f.write(recordFile{Version: recordVersion, ConversationID: file.ConversationID})
}

// LastConversation is the conversation of the latest turn, whether in flight or over; empty if none is known.
func (f *FileRecord) LastConversation() (string, error) {
	file, err := f.read()
	if errors.Is(err, ErrRecordCorrupt) {
		return "", nil
	}
	return file.ConversationID, err
}

func (f *FileRecord) read() (recordFile, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return recordFile{}, nil
	}
	if err != nil {
		return recordFile{}, fmt.Errorf("read the record: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxRecordBytes {
		return recordFile{}, fmt.Errorf("%w: it is over %d bytes", ErrRecordCorrupt, maxRecordBytes)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxRecordBytes))
	if err != nil {
		return recordFile{}, fmt.Errorf("read the record: %w", err)
	}
	return decodeRecord(data)
}

func decodeRecord(data []byte) (recordFile, error) {
	var file recordFile
	if err := json.Unmarshal(data, &file); err != nil {
		// The parser's words can quote the file, hence they are left out.
		return recordFile{}, fmt.Errorf("%w: it is no JSON of the right shape", ErrRecordCorrupt)
	}
	if file.Version != recordVersion {
		return recordFile{}, fmt.Errorf("%w: version %d is unknown", ErrRecordCorrupt, file.Version)
	}
	return file, nil
}

func (f *FileRecord) write(file recordFile) error {
	data, err := json.Marshal(file)
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	if len(data) > maxRecordBytes {
		return fmt.Errorf("write the record: %d bytes are over the limit of %d", len(data), maxRecordBytes)
	}
	if err := replaceFile(f.path, data); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// replaceFile writes a file beside the old one and renames it. Both the bytes and the name are on disk when it returns.
func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
