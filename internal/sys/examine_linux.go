package sys

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MemoryFilesOf opens, for reading only, the memory files of process pid with names that begin with
// prefix. Their Name is the name that [Memfd] got. Of several descriptors of one file it opens the
// first. The caller must close the files. The error wraps [fs.ErrNotExist] if there is no such
// process, and [fs.ErrPermission] if this process may not read its descriptors.
func MemoryFilesOf(pid int, prefix string) (files []*os.File, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the open files of process %d: %w", pid, err)
	}
	var known []os.FileInfo
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		target, err := os.Readlink(path)
		name, ok := strings.CutPrefix(strings.TrimSuffix(target, " (deleted)"), "/memfd:")
		if err != nil || !ok || !strings.HasPrefix(name, prefix) {
			continue // closed meanwhile, or another file
		}
		f, err := openMemory(path, name, &known)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, fmt.Errorf("open the memory of process %d: %w", pid, err)
		}
		if f != nil {
			files = append(files, f)
		}
	}
	return files, nil
}

// openMemory opens the file at path for reading, and adds it to the known files. The returned
// file has the given name, and the caller must close it. openMemory returns nil and no error if
// the file is one of the known files, or was closed meanwhile.
func openMemory(path, name string, known *[]os.FileInfo) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT:
		return nil, nil
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := newFile(fd, name)
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	for _, k := range *known {
		if os.SameFile(k, info) {
			return nil, f.Close()
		}
	}
	*known = append(*known, info)
	return f, nil
}

// MapReadOnly maps the first size bytes of f for reading only. f need not be writable. The
// caller must end the mapping with [Unmap]. A write to the memory ends the process. The file
// must be sealed (see [Sealed]), or the caller must be prepared for a fault (SIGBUS) if a
// process truncates it.
func MapReadOnly(f *os.File, size int) (mem []byte, err error) {
	err = withDescriptor(f, func(fd int) error {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of %s: %w", size, f.Name(), err)
	}
	return withoutDump(mem, f)
}

// Sealed reports whether the size of f is fixed, as [Seal] does. It returns false if the seals
// cannot be read.
func Sealed(f *os.File) (sealed bool) {
	withDescriptor(f, func(fd int) error {
		const want = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
		seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
		sealed = err == nil && seals&want == want
		return err
	})
	return sealed
}

// Backed returns the number of bytes of f, from off on, that are backed by pages without a gap.
// It returns 0 if off is in a hole or beyond the end, or if f cannot be read. Bytes beyond the
// result should not be read through a mapping, because the read would back them.
func Backed(f *os.File, off int64) (n int64) {
	withDescriptor(f, func(fd int) error {
		// SEEK_HOLE returns off itself if off is in a hole.
		end, err := unix.Seek(fd, off, unix.SEEK_HOLE)
		if err == nil {
			n = end - off
		}
		return err
	})
	return n
}

// Inode returns the inode number of f, which identifies f in its file system.
func Inode(f *os.File) (n uint64, err error) {
	err = withDescriptor(f, func(fd int) error {
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		n = st.Ino
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find the number of %s: %w", f.Name(), err)
	}
	return n, nil
}
