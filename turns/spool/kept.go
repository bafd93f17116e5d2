package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// walkMax bounds the directory entries that one Kept looks at. What lies past it is found once those before it are gone.
const walkMax = 1 << 16

// readBatch is how many names are read from a directory at once.
const readBatch = 256

// found is a file that may hold an ending.
type found struct {
	path  string
	reply turns.ReplyID
	age   time.Time // when it was written
}

// Kept implements turns.Spool. The oldest are those that were written first, by the file's time.
func (d *Dir) Kept(ctx context.Context, limit int, pass func(turns.ReplyID) bool) ([]turns.Spooled, error) {
	files, err := d.walk(ctx)
	if err != nil {
		return nil, fmt.Errorf("look through the spool: %w", err)
	}
	slices.SortFunc(files, func(a, b found) int {
		if c := a.age.Compare(b.age); c != 0 {
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	var kept []turns.Spooled
	for _, f := range files {
		if err := ctx.Err(); err != nil || len(kept) >= limit {
			return kept, err
		}
		if pass(f.reply) {
			continue
		}
		e, ok := d.read(f.path)
		if ok {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// walk lists the files of all conversations. What is not named like a conversation is somebody else's and left alone.
func (d *Dir) walk(ctx context.Context) (files []found, err error) {
	room := walkMax
	err = d.entries(d.path, &room, func(folder fs.DirEntry) error {
		if id, err := uuid.Parse(folder.Name()); err != nil || id.String() != folder.Name() || !folder.IsDir() {
			return nil
		}
		path := filepath.Join(d.path, folder.Name())
		err := d.entries(path, &room, func(e fs.DirEntry) error {
			if f, ok := d.look(path, e); ok {
				files = append(files, f)
			}
			return ctx.Err()
		})
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist): // gone: another process dropped the last file of it
		case ctx.Err() != nil:
			return ctx.Err()
		default: // it may belong to another user, or lie on a bad place of the disk; those behind it do not
			d.logger.Warn("folder of the spool not read", "folder", d.name(path), "err", err)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // somebody has removed the directory; it is made again when there is something to keep
	}
	return files, err
}

// entries calls f for what is in a directory, and takes each from room. It stops when there is none left.
func (d *Dir) entries(path string, room *int, f func(fs.DirEntry) error) error {
	dir, err := d.disk.open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	for *room > 0 {
		batch, err := dir.ReadDir(min(readBatch, *room))
		*room -= len(batch)
		for _, e := range batch {
			if err := f(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look judges an entry of a conversation's folder by its name and kind alone.
func (d *Dir) look(folder string, e fs.DirEntry) (found, bool) {
	path := filepath.Join(folder, e.Name())
	info, err := e.Info()
	if err != nil {
		return found{}, false // gone by now
	}
	switch filepath.Ext(e.Name()) {
	case tempEnding:
		if time.Since(info.ModTime()) > tempAge {
			d.removeTemp(path)
		}
		return found{}, false
	case ending:
	default:
		return found{}, false
	}
	reply, ok := named(e.Name())
	switch {
	case !ok:
		d.setAside(path, errors.New("its name is none of a spooled ending"))
	case !info.Mode().IsRegular():
		d.setAside(path, errors.New("it is no regular file"))
	default:
		return found{path, reply, info.ModTime()}, true
	}
	return found{}, false
}

// named reads names of the form <reply id>-<epoch>.json.
func named(name string) (reply turns.ReplyID, ok bool) {
	name = strings.TrimSuffix(name, ending)
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return reply, false
	}
	id, err := uuid.Parse(name[:i])
	return turns.ReplyID{UUID: id}, err == nil
}

// removeTemp removes what a process that died in the middle of a write has left: it was never kept.
func (d *Dir) removeTemp(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.logger.Warn("left-over of a spool write not removed", "file", d.name(path), "err", err)
	}
}

// read reads one file, and sets it aside if it makes no sense. One that the disk does not give is left where it is: the
// next look may have more luck.
func (d *Dir) read(path string) (turns.Spooled, bool) {
	raw, err := readBounded(path, d.max)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return turns.Spooled{}, false
	case errors.Is(err, errTooLarge):
		d.setAside(path, err)
		return turns.Spooled{}, false
	case err != nil:
		d.logger.Warn("spooled ending not read", "file", d.name(path), "err", err)
		return turns.Spooled{}, false
	}
	e, err := decode(raw)
	if err == nil && d.file(e.Ending.Fence) != path {
		err = errors.New("its name is not that of the reply in it")
	}
	if err != nil {
		d.setAside(path, err)
		return turns.Spooled{}, false
	}
	return e, true
}

var errTooLarge = errors.New("it is larger than a file may be")

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = errTooLarge
	}
	return raw, err
}

// setAside renames a file that can't be an ending of ours, so that it is met once.
func (d *Dir) setAside(path string, why error) {
	err := d.disk.rename(path, path+badEnding)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another process was first
	case err != nil:
		d.logger.Error("file of the spool can't be read and not be set aside", "file", d.name(path), "reason", why.Error(), "err", err)
	default:
		d.logger.Error("file of the spool set aside", "file", d.name(path)+badEnding, "reason", why.Error())
	}
}

// name is a file's name below the directory.
func (d *Dir) name(path string) string {
	if rel, err := filepath.Rel(d.path, path); err == nil {
		return rel
	}
	return filepath.Base(path)
}
