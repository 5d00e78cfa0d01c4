package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inherited are the descriptors of device files that a program started by this process would get.
type Inherited map[int]bool

// InheritedDevices lists these descriptors. The list is empty if /proc is not mounted.
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

// Seclude keeps descriptors that were opened since before from programs that are started. The
// caller has held syscall.ForkLock for reading since then, so no program was started in between.
func (before Inherited) Seclude() {
	for fd := range InheritedDevices() {
		if !before[fd] {
			unix.CloseOnExec(fd)
		}
	}
}
