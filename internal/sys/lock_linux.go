package sys

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// LockByte takes the exclusive lock of byte i of f. It returns false if another open file
// description holds the lock. It never waits. The lock belongs to f's open file description: the
// kernel releases it when the last descriptor of the description is closed:
// https://man7.org/linux/man-pages/man2/fcntl.2.html. So it is released however the
// process dies, and before the process is reaped. The byte need not exist in the file.
func LockByte(f *os.File, i int64) (bool, error) {
	switch err := setLock(f, i, unix.F_WRLCK); err {
	case nil:
		return true, nil
	case unix.EAGAIN, unix.EACCES:
		return false, nil
	default:
		return false, fmt.Errorf("lock byte %d of %s: %w", i, f.Name(), err)
	}
}

// UnlockByte releases the lock of byte i. It is not an error if the byte was not locked.
func UnlockByte(f *os.File, i int64) error {
	if err := setLock(f, i, unix.F_UNLCK); err != nil {
		return fmt.Errorf("unlock byte %d of %s: %w", i, f.Name(), err)
	}
	return nil
}

// ByteLocked reports whether an open file description other than f's holds the lock of byte i. A
// lock taken through f itself does not count.
func ByteLocked(f *os.File, i int64) (locked bool, err error) {
	err = withDescriptor(f, func(fd int) error {
		lk := byteLock(i, unix.F_WRLCK)
		err := retryInterrupted(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lk) })
		locked = lk.Type != unix.F_UNLCK
		return err
	})
	if err != nil {
		return false, fmt.Errorf("query the lock of byte %d of %s: %w", i, f.Name(), err)
	}
	return locked, nil
}

func setLock(f *os.File, i int64, kind int16) error {
	return withDescriptor(f, func(fd int) error {
		lk := byteLock(i, kind)
		return retryInterrupted(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk) })
	})
}

// byteLock returns the lock request for byte i. Pid must stay 0 for open-file-description locks.
func byteLock(i int64, kind int16) unix.Flock_t {
	return unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: i, Len: 1}
}
