//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// setGroup prepares a command, before it starts, to run in a process group of its own. The end
// of its context terminates the group.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup kills the group of a command that has ended. It returns true if processes were left
// in it.
func killGroup(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil }
