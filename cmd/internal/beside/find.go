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

// ErrMissing is wrapped if a helper program is not installed and cannot be built.
var ErrMissing = errors.New("helper program not found")

const source = "github.com/shoal-mp/shoal/cmd/"

// Command returns the command that runs a helper program with args: the program installed beside
// the current one or on the PATH, or else "go run" of its source if the module is available. When
// ctx is done, the process is interrupted, and killed ten seconds later. The error wraps
// [ErrMissing].
func Command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	found, err := Find(program)
	if err != nil {
		tool, failed := exec.LookPath("go")
		// go run needs the module in the workspace or the module graph
		if failed != nil || exec.CommandContext(ctx, tool, "list", source+program).Run() != nil {
			return nil, err
		}
		found, args = tool, append([]string{"run", source + program}, args...)
	}
	c := exec.CommandContext(ctx, found, args...)
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 10*time.Second
	return c, nil
}

// Find returns the path of an installed helper program. It looks beside the current program first
// and then on the PATH. The error wraps [ErrMissing].
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
		"%w: %s is neither in the directory of this program nor on the PATH: install it with go install %s%s@latest",
		ErrMissing,
		program, source, program)
}
