//go:build unix

package manager_test

import "syscall"

var signals = map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGSEGV": syscall.SIGSEGV,
	"SIGSTOP": syscall.SIGSTOP}

func kill(pid int, how string) error { return syscall.Kill(pid, signals[how]) }
