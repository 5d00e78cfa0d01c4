package sys

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// commitPiece bounds one fallocate call to about a millisecond of work. So an interruption costs
// little, and a competing process is not kept out for long.
const commitPiece = 4 << 20

// Memfd returns a new empty file that lives in memory and has no name. When the last descriptor and
// the last mapping of the file go, by whatever death, the kernel frees the file. The name is only
// seen in /proc. The caller closes the file. The error is a *MissingCallError if the kernel has no
// memfd_create.
func Memfd(name string) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("create memory file %q: %w", name, missing("memfd_create", err))
	}
	// The descriptor is in blocking mode, so NewFile leaves it out of Go's poller, which is of no
	// use for a memory file.
	return newFile(fd, name), nil
}

// Resize sets the size of f in bytes. New bytes are zero and take no memory until committed or
// touched.
func Resize(f *os.File, size int64) error {
	return control(f, func(fd int) error {
		if err := retry(func() error { return unix.Ftruncate(fd, size) }); err != nil {
			return fmt.Errorf("resize %s to %d bytes: %w", f.Name(), size, err)
		}
		return nil
	})
}

// Seal fixes the size of f for ever, for every process, so that no process can truncate f under a
// mapping.
func Seal(f *os.File) error {
	return control(f, func(fd int) error {
		seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			return fmt.Errorf("seal %s: %w", f.Name(), err)
		}
		return nil
	})
}

// Map maps the first size bytes of f for reading and writing. Every other mapping of the file
// shares them, and core dumps leave them out. The garbage collector does not know this memory. The
// caller ends the mapping with [Unmap], and must not use a slice of it afterwards.
func Map(f *os.File, size int) ([]byte, error) { return mapFile(f, size, unix.MAP_SHARED) }

// MapPrivate is Map of a file that need not be writable. Writes stay in this process.
func MapPrivate(f *os.File, size int) ([]byte, error) { return mapFile(f, size, unix.MAP_PRIVATE) }

func mapFile(f *os.File, size, flags int) (mem []byte, err error) {
	err = control(f, func(fd int) error {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of %s: %w", size, f.Name(), err)
	}
	if err := unix.Madvise(mem, unix.MADV_DONTDUMP); err != nil {
		unix.Munmap(mem)
		return nil, fmt.Errorf("keep %s out of core dumps: %w", f.Name(), err)
	}
	return mem, nil
}

// Populate prepares this process to write b, which begins at a page of a mapping, so that no page
// of b is a fault later. It is advice: on a kernel without it (before Linux 5.14) the faults come.
func Populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// Forget takes the pages that lie within b, a part of a private mapping of a file, out of this
// process. They come from the file again when they are touched, without what was written to them.
// It is advice.
func Forget(b []byte) {
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if skip := int(-from % page); skip < len(b) {
		b = b[skip:]
		_ = unix.Madvise(b[:len(b)/int(page)*int(page)], unix.MADV_DONTNEED)
	}
}

// resident reports whether the page b is in memory.
func resident(b []byte) bool {
	var in [1]byte
	_, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		uintptr(unsafe.Pointer(&in[0])))
	return err == 0 && in[0]&1 != 0
}

// Unmap ends a mapping; b must be exactly what [Map] returned.
func Unmap(b []byte) error {
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(b), err)
	}
	return nil
}

// wantHugePages asks that memory come in huge pages at its first touch, if the kernel has such
// pages to give. It is advice, so an error of the kernel is not passed on.
func wantHugePages(b []byte) {
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page))
	b = b[skip:]
	unix.Madvise(b[:len(b)/page*page], unix.MADV_HUGEPAGE)
}

// ProtectNone makes every access to b a fault; b must start and end at page boundaries of a
// mapping.
func ProtectNone(b []byte) error { return protect(b, unix.PROT_NONE) }

// ProtectReadWrite undoes [ProtectNone].
func ProtectReadWrite(b []byte) error { return protect(b, unix.PROT_READ|unix.PROT_WRITE) }

func protect(b []byte, prot int) error {
	if err := unix.Mprotect(b, prot); err != nil {
		return fmt.Errorf("protect %d bytes: %w", len(b), err)
	}
	return nil
}

// Commit backs the n bytes at off with pages, which are zero where they were not backed before.
// After an error part of the range may be backed: the caller gives the range back with [Punch]. A
// full control group is not an error here, because the kernel kills instead: ask [MemoryLimit]
// before.
func Commit(f *os.File, off, n int64) error {
	return control(f, func(fd int) error {
		for end := off + n; off < end; off += commitPiece {
			if err := fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, min(commitPiece, end-off)); err != nil {
				return fmt.Errorf("commit %d bytes at %d of %s: %w", end-off, off, f.Name(), err)
			}
		}
		return nil
	})
}

// Punch gives the pages of the n bytes at off back to the kernel; the bytes read as zero
// afterwards.
func Punch(f *os.File, off, n int64) error {
	return control(f, func(fd int) error {
		if n == 0 {
			return nil
		}
		if err := fallocate(fd, unix.FALLOC_FL_KEEP_SIZE|unix.FALLOC_FL_PUNCH_HOLE, off, n); err != nil {
			return fmt.Errorf("punch %d bytes at %d of %s: %w", n, off, f.Name(), err)
		}
		return nil
	})
}

func fallocate(fd int, mode uint32, off, n int64) error {
	return retry(func() error { return unix.Fallocate(fd, mode, off, n) })
}

// Allocated returns how many bytes of f are backed by pages.
func Allocated(f *os.File) (bytes int64, err error) {
	err = control(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("count the pages of %s: %w", f.Name(), err)
		}
		bytes = st.Blocks * 512 // st_blocks counts 512-byte units whatever the page size
		return nil
	})
	return bytes, err
}

// Reopen returns a second open file description of f, with locks of its own. A lock that [LockByte]
// takes through it is not shared with the processes to which f was passed. Reopen needs /proc. The
// caller closes the file.
func Reopen(f *os.File) (again *os.File, err error) {
	err = control(f, func(fd int) error {
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		return retry(func() error {
			n, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == nil {
				again = newFile(n, f.Name())
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reopen %s through /proc: %w", f.Name(), err)
	}
	return again, nil
}
