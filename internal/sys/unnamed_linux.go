package sys

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenUnnamed creates a file in dir without a name. [LinkUnnamed] gives it the given name, so a
// killed program leaves no file. OpenUnnamed returns an error if the file system does not
// support such files, and without /proc. The caller must close the file.
func OpenUnnamed(dir, name string) (*os.File, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return nil, err
	}
	return newFile(fd, filepath.Join(dir, name)), nil
}

// LinkUnnamed gives a file of [OpenUnnamed] its name. The error wraps [fs.ErrExist] if the
// directory has a file of that name.
func LinkUnnamed(f *os.File) error {
	from := fmt.Sprint("/proc/self/fd/", f.Fd())
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, f.Name(), unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: from, New: f.Name(), Err: err}
	}
	return nil
}
