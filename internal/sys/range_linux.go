package sys

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// LockRange takes the exclusive lock of n bytes of f at off, and does not wait. It returns
// false if another open file description holds one of these bytes. The kernel releases the lock
// when the last descriptor and the last mapping of this description are gone, in whatever
// process they are: https://man7.org/linux/man-pages/man2/fcntl.2.html. So the lock can count
// users that may be killed at any time.
func LockRange(f *os.File, off, n int64) (ok bool, err error) {
	return lockRange(f, off, n, unix.F_WRLCK)
}

// ShareRange is [LockRange] for a shared lock, which several descriptions may hold. It returns
// false if another description holds the exclusive lock of one of the bytes. If f's description
// has the exclusive lock, ShareRange turns it into a shared one.
func ShareRange(f *os.File, off, n int64) (ok bool, err error) {
	return lockRange(f, off, n, unix.F_RDLCK)
}

func lockRange(f *os.File, off, n int64, how int16) (ok bool, err error) {
	err = withDescriptor(f, func(fd int) error {
		lk := unix.Flock_t{Type: how, Whence: io.SeekStart, Start: off, Len: n}
		return retryInterrupted(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk) })
	})
	switch err {
	case nil:
		return true, nil
	case unix.EAGAIN, unix.EACCES:
		return false, nil
	}
	return false, fmt.Errorf("lock %d bytes at %d of %s: %w", n, off, f.Name(), err)
}

// LockedRange returns the start and the size of one range among the n bytes at off that an open
// file description other than f's has locked, exclusively or shared. size is 0 if there is
// none. The range may begin before these bytes and end behind them.
func LockedRange(f *os.File, off, n int64) (start, size int64, err error) {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: off, Len: n}
	err = withDescriptor(f, func(fd int) error {
		return retryInterrupted(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lk) })
	})
	if err != nil {
		return 0, 0, fmt.Errorf("query locks of %s: %w", f.Name(), err)
	}
	if lk.Type == unix.F_UNLCK {
		return 0, 0, nil
	}
	return lk.Start, lk.Len, nil
}

// MapRange maps n bytes of f at off for reading and writing, shared like [Map], but included in
// core dumps. off must be a multiple of the page size. The caller must end the mapping with
// [Unmap].
func MapRange(f *os.File, off int64, n int) (mem []byte, err error) {
	err = withDescriptor(f, func(fd int) error {
		mem, err = unix.Mmap(fd, off, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("map %d bytes at %d of %s: %w", n, off, f.Name(), err)
	}
	return mem, nil
}

// Duplicate returns another descriptor, close-on-exec, of f's open file description. The caller
// must close it.
func Duplicate(f *os.File) (again int, err error) { return duplicateFD(f, unix.F_DUPFD_CLOEXEC) }

// DuplicateInherited is [Duplicate] without close-on-exec, as foreign code does it: programs
// started later inherit the descriptor.
func DuplicateInherited(f *os.File) (again int, err error) { return duplicateFD(f, unix.F_DUPFD) }

func duplicateFD(f *os.File, how int) (again int, err error) {
	err = withDescriptor(f, func(fd int) error {
		again, err = unix.FcntlInt(uintptr(fd), how, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	reportOpened(again)
	return again, nil
}

// ThreadID returns the kernel's number of the calling thread. It stays the goroutine's only
// while the goroutine is locked to the thread.
func ThreadID() int { return unix.Gettid() }

// DuplicateNumber returns a file for a close-on-exec duplicate of fd, which belongs to code
// outside of package os and stays open. The caller must close the returned file.
func DuplicateNumber(fd int) (*os.File, error) {
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor %d: %w", fd, err)
	}
	return newFile(again, fmt.Sprintf("descriptor %d", fd)), nil
}

// FileOf returns a file that owns the descriptor opened by f, for example by a C library. The
// descriptor may be inheritable at first; FileOf makes it close-on-exec. It blocks the start of
// child processes meanwhile, because a child would keep the descriptor for ever. It returns the
// error of f unchanged. The caller must close the file.
func FileOf(name string, f func() (fd int, err error)) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := f()
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	return newFile(fd, name), nil
}
