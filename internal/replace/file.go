package replace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// A File is a file that is being written beside the one whose place it will take.
type File struct {
	*os.File
	path string
}

// unfinished are the files that have not taken their places.
var unfinished = struct {
	sync.Mutex
	files map[*File]bool
}{files: map[*File]bool{}}

var errDiscarded = errors.New("it was discarded")

// DiscardAll removes what is being written, for a program that ends in the midst of it.
func DiscardAll() {
	unfinished.Lock()
	defer unfinished.Unlock()
	for f := range unfinished.files {
		os.Remove(f.Name())
	}
	clear(unfinished.files)
}

// finish gives the file its place, or removes it, unless that is done.
func (f *File) finish(do func() error) error {
	unfinished.Lock()
	defer unfinished.Unlock()
	if !unfinished.files[f] {
		return errDiscarded
	}
	err := do()
	if err == nil {
		delete(unfinished.files, f)
	}
	return err
}

// Create makes a file of another name in the directory of path. It takes path's place by Commit, and is removed by Discard.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	file := &File{File: f, path: path}
	unfinished.Lock()
	defer unfinished.Unlock()
	unfinished.files[file] = true
	return file, nil
}

// Commit makes the file readable by all, sees to it that it is on disk, and gives it its place. On an error it is removed.
func (f *File) Commit() error {
	err := f.Chmod(0o644)
	if runtime.GOOS == "windows" {
		err = nil
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = f.finish(func() error { return os.Rename(f.Name(), f.path) })
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", f.path, errors.Join(err, f.Discard()))
	}
	return nil
}

// Discard removes the file, unless it was committed.
func (f *File) Discard() error {
	f.Close()
	if err := f.finish(func() error { return os.Remove(f.Name()) }); err != errDiscarded {
		return err
	}
	return nil
}

// Write calls write with a new file, which then takes the place of the one at path. On an error there is nothing new at all.
func Write(path string, write func(f *os.File) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if err := write(f.File); err != nil {
		return fmt.Errorf("save %s: %w", path, errors.Join(err, f.Discard()))
	}
	return f.Commit()
}
