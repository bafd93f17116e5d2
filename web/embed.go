// Package web holds the console: the page for people that the service serves at /, built of what is in console.
//
// The build is committed, so that the service builds without node. It is checked to be current.
package web

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed all:console/dist
var built embed.FS

// Console serves the console. It answers with its page for the console's own addresses, and with 404 for all that is
// neither such an address nor one of its files, so that a mistyped address of the API is never answered with a page.
func Console() http.Handler {
	dist, err := fs.Sub(built, "console/dist")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return newConsole(dist)
}
