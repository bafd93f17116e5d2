package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds the body of a webhook, in bytes.
const maxBody = 4 << 10

// readTurns follows the turns that a reader names, a line each: the conversation's id and the turn's.
func (f *Follower) readTurns(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		ids := strings.Fields(lines.Text())
		if len(ids) == 0 {
			continue
		}
		if len(ids) != 2 || !(Turn{ids[0], ids[1]}).Valid() {
			return errors.New("a line is not the ids of a conversation and of a turn")
		}
		for {
			err := f.Add(ctx, Turn{ids[0], ids[1]})
			if err == nil {
				break
			}
			if !errors.Is(err, ErrFull) {
				return err
			}
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the turns to follow: %w", err)
	}
	return nil
}

// webhook follows the turns that others name by POST. What it has answered with 202 it does not forget.
func (f *Follower) webhook(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /follow", func(w http.ResponseWriter, r *http.Request) {
		var turn Turn
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&turn)
		if err != nil || !turn.Valid() {
			http.Error(w, `send {"conversationId": "UUID", "turnId": "UUID"}`, http.StatusBadRequest)
			return
		}
		// The turn is followed for longer than the request takes, hence not under its context.
		if err := f.Add(ctx, turn); err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	return http.NewCrossOriginProtection().Handler(mux)
}
