package pool

import (
	"errors"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// duplicate returns files of the pool's own, for workers that replace others.
func duplicate(files []*os.File) (own []*os.File, err error) {
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
