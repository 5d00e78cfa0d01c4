//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// setGroup prepares a command to run in a process group of its own, which ends with its context.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup kills the group of a command that has ended. It reports whether processes were left.
func killGroup(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil }
