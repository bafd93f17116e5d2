package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Engines of the store.
const (
	enginePostgres = "postgres"
	engineSQLite   = "sqlite"
)

// place is where the database is.
type place struct {
	engine string
	// url and direct are Postgres addresses; direct is past a pooler.
	url, direct string
	// file is the SQLite file, an absolute path.
	file string
}

// String names the place without a password.
func (p place) String() string {
	if p.engine == engineSQLite {
		return p.file
	}
	return redactURL(p.url)
}

// place reads the database flags. Its errors never repeat a URL, since it may hold a password.
func (d Database) place() (place, error) {
	if d.DatabaseURL == "" {
		dir, err := d.dir()
		if err != nil {
			return place{}, err
		}
		return place{engine: engineSQLite, file: filepath.Join(dir, "turnd.db")}, d.checkDirect(engineSQLite)
	}
	u, err := url.Parse(d.DatabaseURL)
	if err != nil {
		return place{}, errors.New("--database-url: not a URL; special characters of a password must be %-encoded")
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		direct := d.DatabaseDirectURL
		if direct == "" {
			direct = d.DatabaseURL
		}
		return place{engine: enginePostgres, url: d.DatabaseURL, direct: direct}, d.checkDirect(enginePostgres)
	case "sqlite":
		// What follows a ? or # would be cut off, and another file be served.
		if u.Host != "" || !filepath.IsAbs(u.Path) || strings.ContainsAny(d.DatabaseURL, "?#") {
			return place{}, errors.New("--database-url: a SQLite file is named by its absolute path after two slashes, " +
				"sqlite:///var/lib/turnd/turnd.db; write ? and # in it as %3F and %23")
		}
		return place{engine: engineSQLite, file: filepath.Clean(u.Path)}, d.checkDirect(engineSQLite)
	}
	return place{}, errors.New("--database-url: must begin with postgres:// or sqlite:///")
}

func (d Database) checkDirect(engine string) error {
	if d.DatabaseDirectURL == "" {
		return nil
	}
	if engine == engineSQLite {
		return errors.New("--database-direct-url: there is no pooler before a SQLite file; leave it unset")
	}
	u, err := url.Parse(d.DatabaseDirectURL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("--database-direct-url: must begin with postgres://")
	}
	return nil
}

// dir is the data dir, by the XDG base directory rules unless it was set.
func (d Database) dir() (string, error) {
	if d.DataDir != "" {
		dir, err := filepath.Abs(d.DataDir)
		if err != nil {
			return "", fmt.Errorf("--data-dir: %w", err)
		}
		return dir, nil
	}
	// The rules say that a relative path there is to be ignored.
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "turnd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("--data-dir: there is no home directory to keep files in; set this or --database-url")
	}
	return filepath.Join(home, ".local", "share", "turnd"), nil
}
