package beside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ErrMissing is wrapped where a program is not there and cannot be built.
var ErrMissing = errors.New("a program is missing")

const source = "github.com/shoal-mp/shoal/cmd/"

// Command returns how to run a program: one that stands beside this one, or on the PATH, or is
// built from its source, as go run built this one. When ctx is done it is interrupted, and killed
// if that does not help.
func Command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	found, err := Find(program)
	if err != nil {
		tool, failed := exec.LookPath("go")
		// go run works where this module is at hand
		if failed != nil || exec.CommandContext(ctx, tool, "list", source+program).Run() != nil {
			return nil, err
		}
		found, args = tool, append([]string{"run", source + program}, args...)
	}
	c := exec.CommandContext(ctx, found, args...)
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 10*time.Second
	return c, nil
}

// Find returns where a program is that need not be built. The error wraps ErrMissing.
func Find(program string) (path string, err error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), program)); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return "", fmt.Errorf(
		"%w: %s is neither beside this one nor on the PATH: go install %s%s@latest brings it", ErrMissing,
		program, source, program)
}
