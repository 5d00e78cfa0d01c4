package sys

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusable maps the calls known to RefuseCall to their numbers.
var refusable = map[string]uint32{"memfd_create": unix.SYS_MEMFD_CREATE, "pidfd_open": unix.SYS_PIDFD_OPEN}

// RefuseCall makes the kernel refuse a call by this thread, and by programs that it starts, as the
// seccomp filter of a container does: https://man7.org/linux/man-pages/man2/seccomp.2.html. Tests
// use it to check the resulting errors. The caller must have locked the goroutine to its thread
// permanently. RefuseCall returns an error that wraps EINVAL for an unknown call.
func RefuseCall(call string, errno syscall.Errno) error {
	number, ok := refusable[call]
	if !ok {
		return fmt.Errorf("install seccomp filter against %s: %w", call, unix.EINVAL)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	code := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&code)), 0, 0)
	}
	if err != nil {
		return fmt.Errorf("install seccomp filter against %s: %w", call, err)
	}
	return nil
}
