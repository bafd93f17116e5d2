package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrInUse says that another process, or another Store of this one, has the database file open.
var ErrInUse = errors.New("the database file is in use by another turnd")

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
