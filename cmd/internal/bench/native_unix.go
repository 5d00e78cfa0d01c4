//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// setGroup makes cmd start in a new process group, which is killed when the context of cmd ends.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
