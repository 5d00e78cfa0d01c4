package torch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

const fullEnv = "SHOAL_TORCH_TEST_FULL"

// A /dev/shm that is full, as those of containers of 64 MiB soon are, is an error, and leaves no
// name there.
func TestRegion_OfAFullDevShm(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestRegion_InAFullDevShm$",
		"-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), fullEnv+"=1", "SHOAL_INTEROP=", "SHOAL_TORCH_PYTHONS=") // it needs no Python
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Skipf("this system gives no namespaces: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS"):
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRegion_InAFullDevShm is what runs there.
func TestRegion_InAFullDevShm(t *testing.T) {
	if os.Getenv(fullEnv) == "" {
		t.Skip("only for TestRegion_OfAFullDevShm")
	}
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", shmDir, "tmpfs", 0, "size=64k")); err != nil {
		t.Skipf("nothing can be mounted: %v", err)
	}
	for _, n := range []int{100 << 10, 16 << 20} { // below what is asked of the machine first, and above
		if _, err := (Options{Strategy: FileSystem}).Empty(tensor.Uint8, n); !errors.Is(err, arena.ErrNoSpace) {
			t.Errorf("%d bytes: %v, want ErrNoSpace", n, err)
		}
		if left, _ := filepath.Glob(shmDir + "/*"); len(left) > 0 {
			t.Errorf("%d bytes leave %v", n, left)
		}
	}
	x, err := (Options{Strategy: FileSystem}).Empty(tensor.Uint8, 1000)
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	Trim()
}

// TestRegion_APythonKilledWhileItSharesLeavesNothing kills PyTorch between the making of a file and
// the removal of its name, which PyTorch alone would leave for ever.
func TestRegion_APythonKilledWhileItSharesLeavesNothing(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, strategy := range []string{"file_descriptor", "file_system"} {
			for _, room := range []string{"killed", "none"} {
				cell(t, strategy+" "+room, func(t *testing.T) {
					ctx := testContext(t)
					p, _ := parting(t, py, "killed_while_it_shares", strategy, room)
					err := p.Wait(ctx)
					failed, ok := errors.AsType[*ProcessError](err)
					if !ok || (room == "killed" && failed.Signal != syscall.SIGXFSZ) ||
						(room == "none" && failed.ExitCode != 3) {
						t.Fatalf("it ended with %+v", err)
					}
					pattern := fmt.Sprintf("%s/torch_%d_*", shmDir, p.PID())
					testutil.Eventually(t, func() bool { return len(testutil.Value(filepath.Glob(pattern))(t)) == 0 },
						"waited in vain for %s to go", pattern)
				})
			}
		}
	})
}
