package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Abandoned reports whether a file is this user's and is open nowhere else, in no process of this
// machine, whatever its namespaces. It is false where the file system cannot say.
func Abandoned(f *os.File) bool {
	return control(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != os.Geteuid() {
			return errors.Join(err, unix.EACCES)
		}
		// The kernel gives a lease for writing to the only one who has the file open. It ends with
		// f.
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		return err
	}) == nil
}
