//go:build !unix

package bench

import "os/exec"

// setGroup does nothing: there are no process groups.
func setGroup(*exec.Cmd) {}
