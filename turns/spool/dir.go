package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/turnd/turnd/turns"
)

const (
	// DefaultMaxBytes bounds one file: twice what a reply of the default bound can take with every byte escaped.
	DefaultMaxBytes = 64 << 20
	dirMode         = 0o700
	ending          = ".json"
	badEnding       = ".bad"
	tempEnding      = ".tmp"
	// tempAge is how old a temporary file must be before it is taken for one whose writer died: no write takes that long.
	tempAge = time.Hour
	// makeTries bounds how often a folder is made again that another process took away while it was empty.
	makeTries = 8
)

// Config makes a Dir. Path and Logger must be set.
type Config struct {
	// Path is the directory. It is made if it is not there; what is above it is made too.
	Path   string
	Logger *slog.Logger
	// MaxBytes bounds one file; 0 is DefaultMaxBytes.
	MaxBytes int64
}

// Dir is a directory of spooled endings. It implements turns.Spool and is safe for concurrent use, by several processes
// too.
type Dir struct {
	path   string
	max    int64
	logger *slog.Logger
	disk   disk
}

var _ turns.Spool = (*Dir)(nil)

// disk are the steps that make a write durable and the one that a read may fail at, in a form that a test can watch.
type disk struct {
	open   func(string) (*os.File, error)
	sync   func(*os.File) error
	rename func(from, to string) error
}

// Open makes the directory and tries whether it can be written.
func Open(cfg Config) (*Dir, error) {
	d := &Dir{path: cfg.Path, max: cfg.MaxBytes, logger: cfg.Logger, disk: disk{os.Open, (*os.File).Sync, os.Rename}}
	if d.max <= 0 {
		d.max = DefaultMaxBytes
	}
	if err := os.MkdirAll(d.path, dirMode); err != nil {
		return nil, fmt.Errorf("make the spool dir: %w", err)
	}
	probe, err := os.CreateTemp(d.path, "probe-*"+tempEnding)
	if err != nil {
		return nil, fmt.Errorf("write to the spool dir: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("write to the spool dir: %w", err)
	}
	return d, nil
}

// Keep implements turns.Spool. An ending that is larger than a file may be is an error, and nothing is kept.
func (d *Dir) Keep(ctx context.Context, e turns.Spooled) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := encode(e)
	if err != nil {
		return fmt.Errorf("spool an ending: %w", err)
	}
	if int64(len(raw)) > d.max {
		return fmt.Errorf("spool an ending: it is %d bytes and the limit is %d", len(raw), d.max)
	}
	if err := d.write(d.file(e.Ending.Fence), raw); err != nil {
		return fmt.Errorf("spool an ending: %w", err)
	}
	return nil
}

// Drop implements turns.Spool.
func (d *Dir) Drop(_ context.Context, f turns.Fence) error {
	path := d.file(f)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop a spooled ending: %w", err)
	}
	// A folder with something in it stays, and one that is gone is no matter.
	_ = os.Remove(filepath.Dir(path))
	return nil
}

// file is where the ending of a reply is kept.
func (d *Dir) file(f turns.Fence) string {
	return filepath.Join(d.path, f.Key.String(), fileName(f))
}

func fileName(f turns.Fence) string { return fmt.Sprintf("%s-%d%s", f.Reply, f.Epoch, ending) }

// write puts a whole file in place: bytes first, then the name, then the folder's entry, each on the disk before the next.
func (d *Dir) write(path string, raw []byte) error {
	temp, err := d.temp(path)
	if err != nil {
		return err
	}
	if _, err = temp.Write(raw); err == nil {
		err = d.disk.sync(temp)
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = d.disk.rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	// A folder that is gone again was emptied by another process, which had no more use for the file.
	if err = d.syncDir(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// temp makes the file that is renamed to path later. A drop in another process may remove the folder just before.
func (d *Dir) temp(path string) (*os.File, error) {
	folder := filepath.Dir(path)
	var problem error
	for range makeTries {
		if err := d.makeFolder(folder); err != nil {
			return nil, err
		}
		// The mode of a temporary file is 0600.
		f, err := os.CreateTemp(folder, strings.TrimSuffix(filepath.Base(path), ending)+"-*"+tempEnding)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		problem = err
	}
	return nil, problem
}

// makeFolder makes a conversation's folder, and has its name on the disk before anything is in it. A directory that somebody
// has removed meanwhile is made again: a paid reply is worth more than the mistake.
func (d *Dir) makeFolder(folder string) error {
	if err := os.MkdirAll(d.path, dirMode); err != nil {
		return err
	}
	err := os.Mkdir(folder, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.syncDir(d.path)
}

func (d *Dir) syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.disk.sync(f), f.Close())
}
