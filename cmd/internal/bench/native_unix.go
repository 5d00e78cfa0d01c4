//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// setGroup prepares a command to run in a process group of its own, all of which is killed with it.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
