package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inherited is the set of the descriptors of device files that a program started by this
// process would inherit. Every value is true. [InheritedDevices] makes it.
type Inherited map[int]bool

// InheritedDevices returns the descriptors above 2 that are open on device files and not
// close-on-exec. The set is empty if /proc is not mounted.
func InheritedDevices() Inherited {
	all := Inherited{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return all
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		var s unix.Stat_t
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 ||
			unix.Fstat(fd, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		all[fd] = true
	}
	return all
}

// Seclude makes the device descriptors that were opened since before close-on-exec. The caller must
// have held [syscall.ForkLock] for reading since then, so that no program was started in between.
func (before Inherited) Seclude() {
	for fd := range InheritedDevices() {
		if !before[fd] {
			unix.CloseOnExec(fd)
		}
	}
}
