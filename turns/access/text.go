package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"regexp"
	"strings"
)

// Prefix begins every key's text, so that people and scanners for leaked secrets know one when they see it.
const Prefix = "turnd_"

// Sizes of a key's parts in bytes. The secret has 200 bits, so that its hash needs no salt and no stretching.
const (
	idBytes     = 10
	secretBytes = 25
	checkBytes  = 4
)

// letters are those of base32 in lower case: nothing in them breaks a word, and none is lost to a change of case.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// The lengths of a text and of its parts in characters.
var (
	idLength    = letters.EncodedLen(idBytes)
	checkLength = letters.EncodedLen(checkBytes)
	textLength  = len(Prefix) + idLength + 1 + letters.EncodedLen(secretBytes) + checkLength
)

// errText says what a text is not, and never repeats it.
var errText = errors.New("not a whole key: it was cut short or mistyped")

// Text is a whole key, secret included, as its owner has it: turnd_<id>_<secret and checksum>. However it is printed, logged
// or encoded, only its id is shown; Reveal gives the rest.
type Text struct{ id, whole string }

// Mint makes a new key's text.
func Mint() Text {
	var raw [idBytes + secretBytes]byte
	rand.Read(raw[:]) // never fails
	id := letters.EncodeToString(raw[:idBytes])
	body := Prefix + id + "_" + letters.EncodeToString(raw[idBytes:])
	return Text{id: id, whole: body + checksum(body)}
}

// Looks reports whether a text claims to be a key, whole or not.
func Looks(text string) bool { return strings.HasPrefix(text, Prefix) }

// ParseText reads a key's text. One that was cut short or mistyped fails by its form or its checksum, before anybody is asked;
// the error does not repeat it.
func ParseText(text string) (Text, error) {
	if len(text) != textLength || !Looks(text) || text[len(Prefix)+idLength] != '_' {
		return Text{}, errText
	}
	body := text[:textLength-checkLength]
	if checksum(body) != text[textLength-checkLength:] {
		return Text{}, errText
	}
	return Text{id: text[len(Prefix) : len(Prefix)+idLength], whole: text}, nil
}

// checksum finds mistakes and is no secret.
func checksum(body string) string {
	var sum [checkBytes]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return letters.EncodeToString(sum[:])
}

// IsID reports whether a text has the form of a key's id.
func IsID(text string) bool {
	raw, err := letters.DecodeString(text)
	return err == nil && len(raw) == idBytes && len(text) == idLength
}

// inText finds keys within a text, whole or not, up to what can't be of one.
var inText = regexp.MustCompile(`(turnd_[a-z2-7]{16})_[^\s"'` + "`" + `]*`)

// Conceal takes the secrets out of a text that may have keys in it, such as a command line that was mistyped.
func Conceal(text string) string { return inText.ReplaceAllString(text, "${1}_***") }

// ID is the public part, by which the key is found.
func (t Text) ID() string { return t.id }

// Hash is the SHA-256 of the whole text, which is all that is kept of it.
func (t Text) Hash() []byte {
	sum := sha256.Sum256([]byte(t.whole))
	return sum[:]
}

// Reveal gives the whole text, for its owner alone.
func (t Text) Reveal() string { return t.whole }

// Matches reports whether a text is this key's. It takes the same time whatever of it is wrong.
func (k Key) Matches(t Text) bool { return subtle.ConstantTimeCompare(k.Hash, t.Hash()) == 1 }

// String implements fmt.Stringer without the secret.
func (t Text) String() string { return Prefix + t.id + "_***" }

// Format implements fmt.Formatter, so that no verb shows the fields.
func (t Text) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, t.String()) }

// LogValue implements slog.LogValuer without the secret.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText implements encoding.TextMarshaler without the secret.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
