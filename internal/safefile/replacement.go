package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A File is a file that is being written beside the one whose place it will take.
type Replacement struct {
	*os.File
	path    string
	unnamed bool // it gets its name when it is whole
}

// unfinished are the files that have not taken their places.
var unfinished = struct {
	sync.Mutex
	files map[*Replacement]bool
}{files: map[*Replacement]bool{}}

// openUnnamed is sys.OpenUnnamed, but for tests of file systems that have no files without names.
var openUnnamed = sys.OpenUnnamed

var errDiscarded = errors.New("it was discarded")

// DiscardReplacements removes what is being written, for a program that ends in the midst of it.
func DiscardReplacements() {
	unfinished.Lock()
	defer unfinished.Unlock()
	for f := range unfinished.files {
		f.remove()
	}
	clear(unfinished.files)
}

// finish gives the file its place, or removes it, unless that is done.
func (f *Replacement) finish(do func() error) error {
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

// Create makes a file in the directory of path, without a name where the file system has such
// files, so that a program that is killed leaves nothing, and otherwise of a hidden one. What
// killed programs have left of those is removed by the next that writes to that directory. The file
// takes path's place by Commit, and is removed by Discard. Its permissions are as if it were
// written in its place: what the file that is there allows, or else what the umask leaves.
//
// Where path is a symbolic link, what it points to is replaced, and the link stays. A path of
// something else than a file, a FIFO say, is an error, as is a link that leads nowhere.
func NewReplacement(path string) (*Replacement, error) {
	place, old, err := placeOf(path)
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	dir, other := filepath.Dir(place), hidden(filepath.Base(place))
	sweep(dir, filepath.Base(place))
	file := &Replacement{path: place, unnamed: true}
	if file.File, err = openUnnamed(dir, other); err != nil {
		file.unnamed = false
		file.File, err = os.OpenFile(filepath.Join(dir, other), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	if old != nil {
		file.Chmod(old.Mode().Perm()) // where a file system has no modes there is nothing to keep
	}
	unfinished.Lock()
	defer unfinished.Unlock()
	unfinished.files[file] = true
	return file, nil
}

var errNoFile = errors.New("what is there is not a regular file; remove it, or choose another path")

// placeOf returns the path of the file that is to be replaced, which is at the end of symbolic
// links, and what is there, nil for nothing.
func placeOf(path string) (string, os.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", nil, err
		}
		info, err = os.Lstat(path)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return path, nil, nil
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular():
		return "", nil, errNoFile
	}
	return path, info, nil
}

// Commit sees to it that the file and its name are on disk, and gives it its place. On an error it
// is removed.
func (f *Replacement) Commit() error {
	err := f.Sync()
	if err == nil {
		err = f.finish(f.moveIntoPlace)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", f.path, errors.Join(err, f.Discard()))
	}
	if err := SyncDir(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("save %s: it is in its place, which is not on disk yet: %w", f.path, err)
	}
	return nil
}

// moveIntoPlace gives the file its name, if it has none yet, and its place.
func (f *Replacement) moveIntoPlace() error {
	if f.unnamed {
		if err := sys.LinkUnnamed(f.File); err != nil {
			return err
		}
		f.unnamed = false
	}
	return os.Rename(f.Name(), f.path)
}

// SyncDir writes a directory to disk, where its file system can do that.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // a directory that may be written to and not read
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// Discard removes the file, unless it was committed.
func (f *Replacement) Discard() error {
	f.Close()
	if err := f.finish(f.remove); err != errDiscarded {
		return err
	}
	return nil
}

func (f *Replacement) remove() error {
	if f.unnamed {
		return nil
	}
	return os.Remove(f.Name())
}

// Write calls write with a new file, which then takes the place of the one at path. On an error
// there is nothing new at all.
func Replace(path string, write func(f *os.File) error) error {
	f, err := NewReplacement(path)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if !whole { // write has panicked
			f.Discard()
		}
	}()
	err = write(f.File)
	whole = true
	if err != nil {
		return fmt.Errorf("save %s: %w", path, errors.Join(err, f.Discard()))
	}
	return f.Commit()
}
