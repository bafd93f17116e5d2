package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func FuzzACursorIsReadAsItIsWrittenOrNotAtAll(f *testing.F) {
	for _, seed := range []string{"", ":", "0b0b0b0b-0000-4000-8000-000000000003:0", "0b0b0b0b-0000-4000-8000-000000000003:4294967295:end",
		"0B0B0B0B-0000-4000-8000-000000000003:1", "0b0b0b0b-0000-4000-8000-000000000003:+1", "urn:uuid:0b0b0b0b-0000-4000-8000-000000000003:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := parseEventCursor(text)
		if ok {
			again, ok := parseEventCursor(c.String())
			if !ok || again != c {
				t.Fatalf("%q is read as %v, and what that is written as is not", text, c)
			}
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(lastEventID, text)
		got, err := cursorOf(r)
		if text != "" && (err == nil) != ok || got != nil && *got != c {
			t.Fatalf("%q: %v, %v", text, got, err)
		}
	})
}
