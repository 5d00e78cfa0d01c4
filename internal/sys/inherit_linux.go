package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inherited are descriptors of device files that a program which this process starts would get.
type Inherited map[int]bool

// InheritedDevices lists them. It is empty where /proc is not mounted.
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

// Seclude keeps those that were opened since before from programs that are started. The caller
// holds syscall.ForkLock for reading since then, so that none was started in between.
func (before Inherited) Seclude() {
	for fd := range InheritedDevices() {
		if !before[fd] {
			unix.CloseOnExec(fd)
		}
	}
}
