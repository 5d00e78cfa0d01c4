package sys

import (
	"bytes"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// rootFS is the file system from which everything about processes and control groups is read.
func rootFS() fs.FS { return rootFiles{os.DirFS("/")} }

// rootFiles reads the small files of /proc and /sys, of which a look at many processes reads
// hundreds. Package os asks for the size of a file that says none, tries to wait for it by epoll,
// and makes a *os.File that the garbage collector watches: that takes twice as long.
type rootFiles struct{ fs.FS }

// pages are where files are read into.
var pages = sync.Pool{New: func() any { return new([4096]byte) }}

// ReadFile implements fs.ReadFileFS.
func (r rootFiles) ReadFile(name string) (data []byte, err error) {
	fail := func(op string, err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: "/" + name, Err: err}
	}
	if !fs.ValidPath(name) {
		return fail("open", fs.ErrInvalid)
	}
	fd := 0
	err = retry(func() (err error) {
		fd, err = unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(fd)
	page := pages.Get().(*[4096]byte)
	defer pages.Put(page)
	for {
		n := 0
		if err := retry(func() (err error) { n, err = unix.Read(fd, page[:]); return err }); err != nil {
			return fail("read", err)
		}
		if n == 0 {
			return data, nil
		}
		if data == nil {
			data = bytes.Clone(page[:n])
		} else {
			data = append(data, page[:n]...)
		}
	}
}

// ReadDir implements fs.ReadDirFS.
func (r rootFiles) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }
