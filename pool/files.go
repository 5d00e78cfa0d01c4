package pool

import (
	"errors"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// duplicateFiles returns duplicates of files, which the pool owns, so that it can pass them to
// replacement workers. The caller must close them. If it returns an error, it has closed them.
func duplicateFiles(files []*os.File) (own []*os.File, err error) {
	for _, f := range files {
		fd, err := sys.Duplicate(f)
		if err != nil {
			return nil, errors.Join(err, closeFiles(own))
		}
		own = append(own, os.NewFile(uintptr(fd), f.Name()))
	}
	return own, nil
}

func closeFiles(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
