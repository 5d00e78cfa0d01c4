package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDevices runs the example without a device, and on two simulated ones, which are sparse files.
func TestDevices(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "devices")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./devices").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	files := []string{filepath.Join(dir, "0"), filepath.Join(dir, "1")}
	for _, f := range files {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f, 256<<20+64<<10); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ devices, even, odd string }{
		"the host":            {"/dev/null", "cpu", "cpu"},
		"two simulated GPUs":  {files[0] + "," + files[1], "cuda:0", "cuda:1"},
		"one for all workers": {files[0], "cuda:0", "cuda:0"},
	} {
		run := exec.CommandContext(ctx, bin)
		run.Env = append(os.Environ(), "SHOAL_CUDA_SIMULATE="+c.devices)
		out, err := run.Output()
		want := `^(rank [02] on ` + c.even + `: 100 digits, a weight of 0\.25\n|rank [13] on ` + c.odd + `: 100 digits, a weight of 0\.25\n){4}` +
			`a million numbers went from ` + c.even + ` by cpu and ` + c.odd + ` to ` + c.even + `, all as they were: true\n$`
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, out, want)
		}
	}
}
