package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// CompleteHeld completes a held reply, under the epoch that the caller has seen, with content from a person: its whole
// content, which must begin with what is stored to the byte, since that may have been shown. Else it is CodeWrongState and
// nothing is written. Its calls are closed by estimate, and not as wasted. A reply that is complete with the same content is
// answered as it stands.
func (s *Service) CompleteHeld(ctx context.Context, caller Caller, conversation ConversationID, id ReplyID, epoch int64,
	content []Block) (Reply, error) {
	content, err := s.checkReplyContent(content)
	if err != nil {
		return Reply{}, err
	}
	looked, err := s.look(caller)
	if err != nil {
		return Reply{}, err
	}
	defer looked()
	return s.decideHeld(ctx, caller, KeyOf(caller.Tenant, conversation), id, epoch, decision{
		verb: VerbAdopt, status: StatusComplete, limited: true,
		made: func(row Reply) bool {
			if row.Status != StatusComplete {
				return false
			}
			_, length, err := extended(row.Content, content)
			return err == nil && length == row.Length
		},
		write: func(row Reply) (Reply, error) {
			pieces, length, err := extended(row.Content, content)
			if err != nil {
				return row, doesNotExtend(row, err)
			}
			row.Content, row.Length, row.StopReason = pieces, length, stopReasonOf(content)
			return row, nil
		},
	})
}

// checkReplyContent brings content into the form that is stored, and refuses what can't stand in a reply.
func (s *Service) checkReplyContent(content []Block) ([]Block, error) {
	const perBlock = 2 // its start and its end
	if size := SizeOf(content) + perBlock*len(content); size > s.set.MaxOutputBytes {
		return nil, &Error{Code: CodeContentTooLarge, Field: "content",
			Problem: fmt.Sprintf("is %d bytes and the limit of a reply is %d", size, s.set.MaxOutputBytes),
			Meta:    map[string]string{"size": strconv.Itoa(size), "limit": strconv.Itoa(s.set.MaxOutputBytes)}}
	}
	if IsBlank(content) {
		return nil, &Error{Code: CodeContentEmpty, Field: "content", Problem: "holds nothing but blanks; a reply says something"}
	}
	out := make([]Block, len(content))
	for i, b := range content {
		var err error
		if out[i], err = replyBlock(fmt.Sprintf("content[%d]", i), b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// replyBlock checks one block of a reply.
func replyBlock(field string, b Block) (Block, error) {
	switch b := b.(type) {
	case Text:
		return Text{Text: dropNUL(b.Text)}, checkText(field+".text", b.Text)
	case Thinking:
		return Thinking{Text: dropNUL(b.Text), Redacted: b.Redacted}, checkText(field+".thinking", b.Text)
	case Refusal:
		return Refusal{Text: dropNUL(b.Text), Category: cleanID(b.Category)}, checkText(field+".refusal", b.Text)
	case Opaque:
		return Opaque{Type: cleanID(b.Type)}, nil
	case ToolUse:
		switch {
		case b.ID == "" || b.Name == "":
			return nil, invalid(field+".tool_use", "must have an id and a name")
		case b.InputJSON != "" && !json.Valid([]byte(b.InputJSON)):
			return nil, invalid(field+".tool_use.input_json", "must be JSON")
		}
		return ToolUse{ID: cleanID(b.ID), Name: cleanID(b.Name), InputJSON: dropNUL(b.InputJSON)}, checkText(field+".tool_use.input_json", b.InputJSON)
	}
	return nil, invalid(field, "this kind of block stands only in user turns")
}

func checkText(field, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return invalid(field, "is not valid UTF-8")
}

// errNothingSaid says that a block past what is stored holds nothing, or what only a vendor could have written.
var errNothingSaid = errors.New("a block that is new holds nothing that can be shown")

// extended is the log of content that begins with what is stored. Seals of what is stored stay.
func extended(stored []Piece, content []Block) ([]Piece, uint32, error) {
	log, err := heldLog(stored)
	if err != nil {
		return nil, 0, err
	}
	known := 0
	if n := len(stored); n > 0 {
		known = int(stored[n-1].Block) + 1
	}
	for i, b := range content {
		p := wholePiece(uint32(i), b)
		if i >= known && (p.Kind == KindOpaque || p.Text == "" && p.Kind != KindToolUse) {
			return nil, 0, errNothingSaid
		}
		if err := log.Append(p); err != nil {
			return nil, 0, err
		}
	}
	if log.behind() {
		return nil, 0, errDiverged
	}
	pieces, length := log.Tail(0)
	return pieces, length, nil
}

// wholePiece is a block of a reply from its start to its end.
func wholePiece(index uint32, b Block) Piece {
	p := Piece{Block: index, Starts: true, Ends: true}
	switch b := b.(type) {
	case Text:
		p.Kind, p.Text = KindText, b.Text
	case Thinking:
		p.Kind, p.Text, p.Redacted = KindThinking, b.Text, b.Redacted
	case Refusal:
		p.Kind, p.Text, p.Type = KindRefusal, b.Text, b.Category
	case Opaque:
		p.Kind, p.Type = KindOpaque, b.Type
	case ToolUse:
		p.Kind, p.Text, p.ToolUseID, p.ToolName = KindToolUse, b.InputJSON, b.ID, b.Name
	}
	return p
}

// doesNotExtend says to a person what is wrong with content that can't become the reply's.
func doesNotExtend(row Reply, err error) error {
	switch {
	case errors.Is(err, errDiverged):
		return &Error{Code: CodeWrongState, Field: "content",
			Problem: "does not begin with what is stored of the reply, which may have been shown; give the whole content, what is stored first. Nothing was changed",
			Meta:    map[string]string{"status": string(row.Status), "stored_length": strconv.FormatUint(uint64(row.Length), 10)}}
	case errors.Is(err, errNothingSaid):
		return invalid("content", "has a block past what is stored that is empty, or that only a vendor can write")
	}
	return err
}

// stopReasonOf is how a model would have ended such content.
func stopReasonOf(content []Block) StopReason {
	reason := StopEndTurn
	for _, b := range content {
		switch b.(type) {
		case ToolUse:
			return StopToolUse
		case Refusal:
			reason = StopRefusal
		}
	}
	return reason
}
