// Command eventsource serves a chat page in plain JavaScript, and passes on to turnd what the page asks of it.
//
// An EventSource can't send an Authorization header. So the page calls its own origin, and what serves it says to turnd who
// calls. Here that is one key for all, from TURND_TOKEN; where there are users, it is whoever their cookie belongs to.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

//go:embed index.html page.js
var page embed.FS

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "`address` to serve the page at")
	turnd := flag.String("turnd", "http://127.0.0.1:8080", "`URL` of turnd")
	flag.Parse()
	if err := run(*listen, *turnd, os.Getenv("TURND_TOKEN"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "eventsource:", err)
		os.Exit(1)
	}
}

func run(listen, turnd, token string, out io.Writer) error {
	target, err := url.Parse(turnd)
	if err != nil {
		return fmt.Errorf("the URL of turnd: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("say where the page is: %w", err)
	}
	server := http.Server{Handler: handler(target, token), ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(listener)
}

func handler(turnd *url.URL, token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(page))
	mux.Handle("/v1/", &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(turnd)
			r.Out.Header.Del("Cookie")
			if token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		// While turnd can't be reached the connection just ends. An EventSource tries again after that, but never after a 502.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	return mux
}
