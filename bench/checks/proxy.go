package main

import (
	"net/url"

	"github.com/turnd/turnd/bench/rig"
)

// startProxy stands between a server and the database of a URL, and gives the URL that goes through it.
func startProxy(dsn string) (*rig.Link, string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, "", err
	}
	link, err := rig.NewLink(u.Host)
	if err != nil {
		return nil, "", err
	}
	u.Host = link.Addr()
	return link, u.String(), nil
}
