package sys

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// commitPiece limits one fallocate call to about a millisecond of work, so that an interruption
// costs little, and a competing process is not blocked for long.
const commitPiece = 4 << 20

// Memfd creates an empty, unnamed file in memory. The kernel frees it when its last descriptor and
// its last mapping are gone, however their processes ended:
// https://man7.org/linux/man-pages/man2/memfd_create.2.html. The given name appears only in /proc.
// The caller must close the file. Memfd returns an error that wraps a [*MissingCallError] if the
// kernel has no memfd_create.
func Memfd(name string) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("create memory file %q: %w", name, wrapMissingCall("memfd_create", err))
	}
	// The descriptor is in blocking mode, so NewFile leaves it out of Go's poller, which is useless
	// for a memory file.
	return newFile(fd, name), nil
}

// Resize sets the size of f in bytes. New bytes are zero and use no memory until they are
// committed or touched. The error wraps EPERM if f is sealed.
func Resize(f *os.File, size int64) error {
	return withDescriptor(f, func(fd int) error {
		if err := retryInterrupted(func() error { return unix.Ftruncate(fd, size) }); err != nil {
			return fmt.Errorf("resize %s to %d bytes: %w", f.Name(), size, err)
		}
		return nil
	})
}

// Seal fixes the size of f permanently and for all processes, so that no process can truncate f
// under a mapping. f must be a file of [Memfd], and cannot be sealed twice.
func Seal(f *os.File) error {
	return withDescriptor(f, func(fd int) error {
		seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			return fmt.Errorf("seal %s: %w", f.Name(), err)
		}
		return nil
	})
}

// Map maps the first size bytes of f for reading and writing. The memory is shared with all other
// mappings of the file, excluded from core dumps, and not managed by the garbage collector. The
// caller must end the mapping with [Unmap], and must not use a slice of it afterwards.
func Map(f *os.File, size int) ([]byte, error) { return mapFile(f, size, unix.MAP_SHARED) }

// MapPrivate is [Map] for a file that need not be writable. Writes change only the memory of
// this process, not the file.
func MapPrivate(f *os.File, size int) ([]byte, error) { return mapFile(f, size, unix.MAP_PRIVATE) }

func mapFile(f *os.File, size, flags int) (mem []byte, err error) {
	err = withDescriptor(f, func(fd int) error {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of %s: %w", size, f.Name(), err)
	}
	return withoutDump(mem, f)
}

// withoutDump excludes mem, a mapping of f, from core dumps and returns it. If that fails, it
// ends the mapping and returns nil and an error.
func withoutDump(mem []byte, f *os.File) ([]byte, error) {
	if err := unix.Madvise(mem, unix.MADV_DONTDUMP); err != nil {
		unix.Munmap(mem)
		return nil, fmt.Errorf("exclude %s from core dumps: %w", f.Name(), err)
	}
	return mem, nil
}

// Populate makes all pages of b present and writable in this process, so that writes to b do not
// fault. b must begin at a page boundary of a mapping. It is only advice: on a kernel before Linux
// 5.14 it does nothing: https://man7.org/linux/man-pages/man2/madvise.2.html.
func Populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// Forget drops the whole pages within b, which must be part of a private mapping of a file. On the
// next access they are read from the file again, and writes to them are lost:
// https://man7.org/linux/man-pages/man2/madvise.2.html. It is only advice.
func Forget(b []byte) {
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if skip := int(-from % page); skip < len(b) {
		b = b[skip:]
		_ = unix.Madvise(b[:len(b)/int(page)*int(page)], unix.MADV_DONTNEED)
	}
}

// isResident reports whether b, one whole page, is in memory. It returns false if it cannot
// find out.
func isResident(b []byte) bool {
	var in [1]byte
	_, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		uintptr(unsafe.Pointer(&in[0])))
	return err == 0 && in[0]&1 != 0
}

// Unmap ends a mapping. b must be exactly the slice returned by [Map], [MapPrivate],
// [MapReadOnly] or [MapRange], and must not be used afterwards.
func Unmap(b []byte) error {
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(b), err)
	}
	return nil
}

// wantHugePages asks the kernel to place b in huge pages at its first access, if there are any. It
// is only advice, so an error is ignored.
func wantHugePages(b []byte) {
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page))
	b = b[skip:]
	unix.Madvise(b[:len(b)/page*page], unix.MADV_HUGEPAGE)
}

// ProtectNone makes every access to b fault (SIGSEGV). b must start and end at page boundaries
// of a mapping.
func ProtectNone(b []byte) error { return protectPages(b, unix.PROT_NONE) }

// ProtectReadWrite makes b readable and writable again after [ProtectNone].
func ProtectReadWrite(b []byte) error { return protectPages(b, unix.PROT_READ|unix.PROT_WRITE) }

func protectPages(b []byte, prot int) error {
	if err := unix.Mprotect(b, prot); err != nil {
		return fmt.Errorf("protect %d bytes: %w", len(b), err)
	}
	return nil
}

// Commit backs the n bytes at off with pages. Bytes that were not backed before are zero:
// https://man7.org/linux/man-pages/man2/fallocate.2.html. The size of f stays. The error wraps
// ENOSPC if the file system or the machine has no room. After an error part of the range may be
// backed, and the caller should release it with [Punch]. A full control group is not an error
// here, because the kernel kills a process instead, so the caller should check [MemoryLimit]
// before.
func Commit(f *os.File, off, n int64) error {
	return withDescriptor(f, func(fd int) error {
		for end := off + n; off < end; off += commitPiece {
			if err := fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, min(commitPiece, end-off)); err != nil {
				return fmt.Errorf("commit %d bytes at %d of %s: %w", end-off, off, f.Name(), err)
			}
		}
		return nil
	})
}

// Punch returns the pages of the n bytes at off to the kernel. The bytes read as zero
// afterwards, also in mappings: https://man7.org/linux/man-pages/man2/fallocate.2.html. The
// size of f stays.
func Punch(f *os.File, off, n int64) error {
	return withDescriptor(f, func(fd int) error {
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
	return retryInterrupted(func() error { return unix.Fallocate(fd, mode, off, n) })
}

// Allocated returns the number of bytes of f that are backed by pages.
func Allocated(f *os.File) (bytes int64, err error) {
	err = withDescriptor(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("count pages of %s: %w", f.Name(), err)
		}
		bytes = st.Blocks * 512 // st_blocks counts 512-byte units whatever the page size
		return nil
	})
	return bytes, err
}

// Reopen opens f again for reading and writing. The returned file has an open file description
// of its own, so a lock taken through it by [LockByte] is not shared with processes that f was
// passed to. Reopen needs /proc. The caller must close the returned file.
func Reopen(f *os.File) (again *os.File, err error) {
	err = withDescriptor(f, func(fd int) error {
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		return retryInterrupted(func() error {
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
