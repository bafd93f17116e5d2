package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// page is the file that every address of the console is answered with.
const page = "index.html"

// pages are the addresses that the page makes something of, besides /c/ and an id, as web/console/src/app/router.tsx has them.
var pages = []string{"/", "/identity", "/operator/held", "/operator/ledger", "/operator/retries", "/operator/workers"}

// kinds are what the files of a build are, whatever the machine thinks of their names.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".md":   "text/plain; charset=utf-8",
}

// The policy lets the page load and call nothing but its own origin. Images may also be of data that the page has in hand.
// There is no script or style in the page itself, and no code is made of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file is one file of the build, as it goes out.
type file struct {
	body   []byte
	zipped []byte // nil if that would not be smaller
	kind   string // Content-Type
	tag    string // ETag
	cached string // Cache-Control
}

// console serves a build from memory.
type console struct {
	files map[string]file // by path, without the first slash
}

func newConsole(dist fs.FS) *console {
	c := &console{files: map[string]file{}}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		c.files[name] = newFile(name, body)
		return nil
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return c
}

func newFile(name string, body []byte) file {
	sum := sha256.Sum256(body)
	f := file{body: body, kind: kinds[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`, cached: "no-cache"}
	if strings.HasPrefix(name, "assets/") {
		f.cached = "public, max-age=31536000, immutable" // the name has a hash of the content in it
	}
	if zipped := zip(body); len(zipped) < len(body) {
		f.zipped = zipped
	}
	return f
}

// zip compresses once what is sent often.
func zip(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return body
	}
	_, _ = w.Write(body) // to memory, which does not fail
	_ = w.Close()
	return out.Bytes()
}

// ServeHTTP implements http.Handler.
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	f, ok := c.find(r.URL.Path)
	switch {
	case !ok:
		http.Error(w, "there is no such page", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the console is read with GET", http.StatusMethodNotAllowed)
	default:
		f.serve(w, r)
	}
}

// find returns what an address is answered with.
func (c *console) find(address string) (file, bool) {
	if isRoute(address) {
		f, ok := c.files[page]
		return f, ok
	}
	name, rooted := strings.CutPrefix(address, "/")
	if !rooted || name == page {
		return file{}, false
	}
	f, ok := c.files[name]
	return f, ok
}

func isRoute(address string) bool {
	if slices.Contains(pages, address) {
		return true
	}
	id, below := strings.CutPrefix(address, "/c/")
	return below && id != "" && !strings.Contains(id, "/")
}

// guard sets what holds for every answer, also for a refusal.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", f.cached)
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	if matches(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if f.zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // a browser that left is none of ours
}

// matches tells whether a browser has the version with this tag. Proxies that compress mark a tag as weak.
func matches(header, tag string) bool {
	for _, seen := range strings.Split(header, ",") {
		if strings.TrimPrefix(strings.TrimSpace(seen), "W/") == tag {
			return true
		}
	}
	return false
}

func acceptsGzip(header string) bool {
	for _, coding := range strings.Split(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.TrimSpace(name) == "gzip" {
			quality := strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			return strings.Trim(quality, "0.") != "" || quality == ""
		}
	}
	return false
}
