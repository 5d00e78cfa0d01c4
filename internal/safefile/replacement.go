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

// A Replacement is a new file that takes the place of another one when it is committed. The caller
// must call [Replacement.Commit] or [Replacement.Discard].
type Replacement struct {
	*os.File
	path    string
	unnamed bool // has no name until Commit (see sys.OpenUnnamed)
}

// unfinished contains the replacements that are neither committed nor discarded.
var unfinished = struct {
	sync.Mutex
	files map[*Replacement]bool
}{files: map[*Replacement]bool{}}

// openUnnamed is a variable so that tests can simulate file systems without unnamed files.
var openUnnamed = sys.OpenUnnamed

var errDiscarded = errors.New("it was discarded")

// DiscardReplacements removes all unfinished replacements. A program that exits early should call
// it. Their later Commit returns an error, and their later Discard only closes the file.
func DiscardReplacements() {
	unfinished.Lock()
	defer unfinished.Unlock()
	for f := range unfinished.files {
		f.removeFile()
	}
	clear(unfinished.files)
}

// finishWith calls do, which must move or remove the file. If do succeeds, f is no longer
// unfinished. It returns errDiscarded if f was finished before.
func (f *Replacement) finishWith(do func() error) error {
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

// NewReplacement creates a file in the directory of path. The file has no name if the file system
// supports that, so a killed program leaves nothing behind. Otherwise it has a hidden name, and the
// next NewReplacement in the directory by another process removes it if its writer was killed.
// [Replacement.Commit] moves the file to path and [Replacement.Discard] removes it. Its permissions
// are copied from an existing file at path, or follow the umask.
//
// If path is a symbolic link, its target is replaced. NewReplacement returns an error if path is a
// dangling link, or names something other than a regular file, such as a FIFO.
func NewReplacement(path string) (*Replacement, error) {
	place, old, err := resolvePath(path)
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	dir, other := filepath.Dir(place), hiddenName(filepath.Base(place))
	removeLeftovers(dir, filepath.Base(place))
	file := &Replacement{path: place, unnamed: true}
	if file.File, err = openUnnamed(dir, other); err != nil {
		file.unnamed = false
		file.File, err = os.OpenFile(filepath.Join(dir, other), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	if old != nil {
		file.Chmod(old.Mode().Perm()) // a file system without modes has nothing to preserve
	}
	unfinished.Lock()
	defer unfinished.Unlock()
	unfinished.files[file] = true
	return file, nil
}

var errNoFile = errors.New("path exists and is not a regular file: remove it, or choose another path")

// resolvePath resolves a symbolic link. It returns the path of the file to replace, and its
// info, or nil if it does not exist. It returns errNoFile if the path names something other than
// a regular file.
func resolvePath(path string) (string, os.FileInfo, error) {
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

// Commit syncs the file, moves it to its path, closes it and syncs the directory. If syncing or
// moving the file fails, the file is discarded. If only closing it or syncing the directory fails,
// Commit returns an error as well, but the file is in place.
func (f *Replacement) Commit() error {
	err := f.Sync()
	if err == nil {
		err = f.finishWith(f.moveIntoPlace)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", f.path, errors.Join(err, f.Discard()))
	}
	if err := SyncDir(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("save %s: file is in place, but sync of its directory failed: %w", f.path, err)
	}
	return nil
}

// moveIntoPlace links an unnamed file and renames it to its path.
func (f *Replacement) moveIntoPlace() error {
	if f.unnamed {
		if err := sys.LinkUnnamed(f.File); err != nil {
			return err
		}
		f.unnamed = false
	}
	return os.Rename(f.Name(), f.path)
}

// SyncDir syncs a directory. It returns nil if the directory cannot be opened, or if its file
// system does not support this.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // the directory may be writable but not readable
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// Discard closes and removes the file. It is a no-op after a successful Commit or Discard. It
// returns only an error of the removal, not of closing the file.
func (f *Replacement) Discard() error {
	f.Close()
	if err := f.finishWith(f.removeFile); err != errDiscarded {
		return err
	}
	return nil
}

func (f *Replacement) removeFile() error {
	if f.unnamed {
		return nil
	}
	return os.Remove(f.Name())
}

// Replace calls write with a new file and then commits it at path; see [NewReplacement]. write must
// not close the file. If write returns an error or panics, the file at path is unchanged. If the
// commit fails, the error is as for [Replacement.Commit].
func Replace(path string, write func(f *os.File) error) error {
	f, err := NewReplacement(path)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if !whole { // write panicked
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
