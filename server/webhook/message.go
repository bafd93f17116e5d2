package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// Window is how far the time of a message may be from ours, in either direction.
	Window = 5 * time.Minute
	// MaxBody bounds a message's body, in bytes.
	MaxBody = 256 << 10
)

const (
	maxID = 256
	// maxSignatures bounds how many signatures of one message are looked at: a vendor that changes its secret sends two.
	maxSignatures = 16
	secretPrefix  = "whsec_"
	scheme        = "v1,"
)

// Errors of messages. None says more than its sender may know.
var (
	ErrHeaders   = errors.New("the headers webhook-id, webhook-timestamp and webhook-signature are missing or unreadable")
	ErrTime      = errors.New("the message is too old, or of the future")
	ErrSignature = errors.New("no signature fits")
	// ErrSecret says that the secret can't be one: it is base64, mostly after whsec_.
	ErrSecret = errors.New("the secret is not base64")
)

// Key is what signatures are made with.
type Key []byte

// ParseKey reads a secret as vendors show it.
func ParseKey(secret string) (Key, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		return nil, ErrSecret
	}
	return key, nil
}

// Head is what is known of a message before its body is read.
type Head struct {
	ID         string
	timestamp  string
	signatures []string
}

// ReadHead reads the headers of a message and refuses one that is out of time, so that its body need not be read.
func ReadHead(h http.Header, now time.Time) (Head, error) {
	m := Head{ID: h.Get("webhook-id"), timestamp: h.Get("webhook-timestamp"), signatures: strings.Fields(h.Get("webhook-signature"))}
	seconds, err := strconv.ParseInt(m.timestamp, 10, 64)
	if err != nil || m.ID == "" || len(m.ID) > maxID || len(m.signatures) == 0 {
		return Head{}, ErrHeaders
	}
	// Compared in seconds: a time far away would overflow a duration.
	if from, to := now.Add(-Window).Unix(), now.Add(Window).Unix(); seconds < from || seconds > to {
		return Head{}, ErrTime
	}
	return m, nil
}

// Verify reports whether one of the signatures is the key's over this body, in a time that does not tell how much of it
// fits.
func (m Head) Verify(key Key, body []byte) error {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(m.ID + "." + m.timestamp + "."))
	mac.Write(body)
	want, fits := mac.Sum(nil), false
	for _, s := range m.signatures[:min(len(m.signatures), maxSignatures)] {
		encoded, ok := strings.CutPrefix(s, scheme)
		if !ok {
			continue // of another scheme
		}
		given, err := base64.StdEncoding.DecodeString(encoded)
		fits = err == nil && hmac.Equal(given, want) || fits
	}
	if !fits {
		return ErrSignature
	}
	return nil
}
