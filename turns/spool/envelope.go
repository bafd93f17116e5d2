package spool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/turnd/turnd/turns"
)

const (
	format  = "turnd-spool"
	version = 1
)

// envelope is a file. The checksum is of the body's bytes as they stand in the file.
type envelope struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"`
	Body    json.RawMessage `json:"body"`
}

// encode makes the bytes of a file.
func encode(e turns.Spooled) ([]byte, error) {
	body, err := marshal(e)
	if err != nil {
		return nil, err
	}
	return marshal(envelope{Format: format, Version: version, SHA256: checksum(body), Body: body})
}

// marshal is JSON without the escapes that are for web pages: replies are full of the characters that it would blow up.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// decode reads a file. Its errors say what is wrong and repeat nothing of the content.
func decode(raw []byte) (turns.Spooled, error) {
	var env envelope
	if err := json.Unmarshal(raw, &env); err != nil {
		return turns.Spooled{}, errors.New("it is cut short or no JSON")
	}
	switch {
	case env.Format != format:
		return turns.Spooled{}, errors.New("it is of another format")
	case env.Version != version:
		return turns.Spooled{}, fmt.Errorf("it is of version %d and this program reads version %d", env.Version, version)
	case env.SHA256 != checksum(env.Body):
		return turns.Spooled{}, errors.New("its checksum does not match")
	}
	var e turns.Spooled
	if err := json.Unmarshal(env.Body, &e); err != nil {
		return turns.Spooled{}, errors.New("its body is no ending")
	}
	return e, nil
}
