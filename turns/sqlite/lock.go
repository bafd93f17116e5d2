package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse says that another process, or another Store of this one, has the database file open.
var ErrInUse = errors.New("the database file is in use by another turnd")

// maxLinks bounds a chain of links, which may go round in a circle.
const maxLinks = 40

// resolve is the one path of the file that a path leads to, through whatever links, whether the file exists yet or not: two
// names of one file must be one lock.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		found, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(folder, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, and no file yet
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(folder, target)
		}
		path = target
	}
	return "", errors.New("too many links")
}

// create makes the database file, for this user alone, if it does not exist; SQLite gives its other files the same mode. The
// caller holds the lock. A file that exists is not opened: closing it would drop the locks of this process on it.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// lockFile takes the exclusive lock that stands for the database at path. Closing the file releases it, and so does the
// death of the process. The file itself stays: removing it would let two processes lock two files of one name.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: stop that one, or give this one a database of its own", ErrInUse)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
