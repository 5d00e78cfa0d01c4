//go:build unix

package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// A program that hangs is killed with its child, which has its output open.
func TestProgram_IsKilledAfterItsLimit(t *testing.T) {
	const sh = "/bin/sh"
	pid := filepath.Join(t.TempDir(), "pid")
	begun := time.Now()
	_, err := (&program{path: sh}).output(t.Context(), 300*time.Millisecond, "-c", "sleep 60 & echo $! >"+pid+"; wait")
	if !errors.Is(err, errNativeLimit) || time.Since(begun) > 30*time.Second {
		t.Fatalf("got %v after %v, want %v", err, time.Since(begun), errNativeLimit)
	}
	child, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, func() bool {
		state, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(child)), "stat"))
		return err != nil || strings.Contains(string(state), ") Z ")
	}, "the child goes on")
	if out, err := (&program{path: sh}).output(t.Context(), time.Minute, "-c", "echo 7"); string(out) != "7\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	var failed *exec.ExitError
	if _, err := (&program{path: sh}).output(t.Context(), time.Minute, "-c", "exit 3"); !errors.As(err, &failed) {
		t.Errorf("got %v, want an exit status", err)
	}
}
