package sys

import (
	"bytes"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// rootFS returns the file system for reading all data about processes and control groups.
func rootFS() fs.FS { return rootFiles{os.DirFS("/")} }

// rootFiles reads the small files of /proc and /sys. A scan of many processes reads hundreds of
// them. Package os would take twice as long: it asks for the size of a file that does not report
// one, tries to add the file to epoll, and makes an *os.File that the garbage collector watches.
type rootFiles struct{ fs.FS }

// pages is a pool of read buffers.
var pages = sync.Pool{New: func() any { return new([4096]byte) }}

// ReadFile implements [fs.ReadFileFS].
func (r rootFiles) ReadFile(name string) (data []byte, err error) {
	fail := func(op string, err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: "/" + name, Err: err}
	}
	if !fs.ValidPath(name) {
		return fail("open", fs.ErrInvalid)
	}
	fd := 0
	err = retryInterrupted(func() (err error) {
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
		if err := retryInterrupted(func() (err error) { n, err = unix.Read(fd, page[:]); return err }); err != nil {
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

// ReadDir implements [fs.ReadDirFS].
func (r rootFiles) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }
