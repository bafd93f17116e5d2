package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/turnd/turnd/turns"
)

// ErrBadAnswer says that the answer to a question could not be read.
var ErrBadAnswer = errors.New("the answer can't be read")

// AskJSON asks as Ask does, and reads the answer. That nothing is known of what was asked for has turns.ErrNotThere as its
// cause.
func (c *Client) AskJSON(ctx context.Context, post Post, vendor Vendor, answer any) error {
	body, err := c.Ask(ctx, post, vendor)
	if err != nil {
		return NotThere(err)
	}
	if json.Unmarshal(body, answer) != nil {
		return Answered(turns.ClassAmbiguous, ErrBadAnswer)
	}
	return nil
}

// NotThere gives a failure that says that nothing is known of what was asked for, a 404, the cause turns.ErrNotThere.
func NotThere(err error) error {
	var failed *turns.CallError
	if errors.As(err, &failed) && failed.HTTPStatus == http.StatusNotFound {
		failed.Cause = turns.ErrNotThere
	}
	return err
}

// Answered is a failure that lies in what a good answer says.
func Answered(class turns.CallClass, cause error) *turns.CallError {
	return &turns.CallError{Class: class, Phase: turns.PhaseDone, HTTPStatus: http.StatusOK, Cause: cause}
}
