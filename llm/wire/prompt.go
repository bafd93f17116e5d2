package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/turnd/turnd/turns"
)

// CleanText is text as JSON can carry it to any provider: valid UTF-8 without NUL.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// MaxOutput is how many tokens a reply may take: what the options ask for, within the limit of the endpoint. 0 is
// neither.
func MaxOutput(o turns.Options, l turns.Limits) int {
	asked, limit := int(o.MaxOutputTokens), l.MaxOutputTokens
	if asked == 0 || limit == 0 {
		return max(asked, limit)
	}
	return min(asked, limit)
}

// Encode is the body of a request. A struct has one order of fields, so the same value makes the same bytes anywhere.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// versioned is a path that already names an API version, such as /v1 or /v1beta.
var versioned = regexp.MustCompile(`/v[0-9]+[a-z0-9]*$`)

// Join is the URL of a vendor's method below a base URL. A base that ends in a version, as those of compatible servers
// often do, keeps it; to any other /v1 is added.
func Join(base, method string) string { return JoinVersion(base, "v1", method) }

// JoinVersion is Join for a vendor whose version has another name.
func JoinVersion(base, version, method string) string {
	base = strings.TrimRight(base, "/")
	if !versioned.MatchString(base) {
		base += "/" + version
	}
	return base + "/" + method
}

// PlainSystem is the system text of a prompt, or nothing if it is blank.
func PlainSystem(o turns.Options) []string {
	if text := CleanText(o.System); strings.TrimSpace(text) != "" {
		return []string{text}
	}
	return nil
}
