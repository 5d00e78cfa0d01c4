package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Abandoned reports whether a file belongs to this user and is not open anywhere else in any
// process of this machine, in any namespace. It returns false if the file system does not
// support the check. If it returns true, f has a write lease until it is closed.
func Abandoned(f *os.File) bool {
	return withDescriptor(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != os.Geteuid() {
			return errors.Join(err, unix.EACCES)
		}
		// The kernel grants a write lease only if the file is open nowhere else:
		// https://man7.org/linux/man-pages/man2/fcntl.2.html. It ends with f.
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		return err
	}) == nil
}
