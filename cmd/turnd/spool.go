package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/spool"
)

// openSpool opens the place for finished replies that the database has not taken. A folder that was named must be usable;
// the default one may not be, as where there is no home directory: then turnd serves without, and says so.
func (a *app) openSpool(ctx context.Context) error {
	dir, err := a.cfg.spoolDir()
	if err == nil {
		var opened *spool.Dir
		if opened, err = spool.Open(spool.Config{Path: dir, Logger: a.logger, MaxBytes: a.cfg.spoolBytes()}); err == nil {
			a.spool = opened
			return nil
		}
	}
	if a.cfg.SpoolDir != "" {
		return fmt.Errorf("--spool-dir: %w", err)
	}
	a.logger.WarnContext(ctx, "there is no spool: replies that end while the database is away are lost with this process; set --spool-dir", "err", err)
	a.spool = turns.NoSpool{}
	return nil
}

// spoolDir is the folder that was named, or the one in the data dir.
func (c Config) spoolDir() (string, error) {
	if c.SpoolDir != "" {
		return filepath.Abs(c.SpoolDir)
	}
	dir, err := c.Database.dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "spool"), nil
}

// spoolBytes bounds one file: every byte of a reply may take six as JSON.
func (c Config) spoolBytes() int64 {
	return max(spool.DefaultMaxBytes, 6*int64(c.MaxOutputBytes)+1<<20)
}
