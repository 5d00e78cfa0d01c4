package replace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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

// Create makes a file of another name in the directory of path. It takes path's place by Commit,
// and is removed by Discard. Its permissions are as if it were written in its place: what the file
// that is there allows, or else what the umask leaves.
func Create(path string) (*File, error) {
	other := "." + filepath.Base(path) + "." + strconv.FormatUint(rand.Uint64(), 36)
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), other), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	if old, err := os.Stat(path); err == nil && old.Mode().IsRegular() {
		f.Chmod(old.Mode().Perm()) // where a file system has no modes there is nothing to keep
	}
	file := &File{File: f, path: path}
	unfinished.Lock()
	defer unfinished.Unlock()
	unfinished.files[file] = true
	return file, nil
}

// Commit sees to it that the file is on disk, and gives it its place. On an error it is removed.
func (f *File) Commit() error {
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
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

// Write calls write with a new file, which then takes the place of the one at path. On an error
// there is nothing new at all.
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
