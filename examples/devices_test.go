package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// simulated returns the program of an example, and files that are simulated devices.
func simulated(ctx context.Context, t *testing.T, example string, devices int) (bin string, files []string) {
	dir := t.TempDir()
	bin = filepath.Join(dir, example)
	if out, err := exec.CommandContext(ctx, "go", "build", "-tags", "cudasim", "-o", bin, "./"+example).
		CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for n := range devices {
		f := filepath.Join(dir, strconv.Itoa(n))
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f, 256<<20+64<<10); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return bin, files
}

// Twice as many processes as columns add to one tensor on a device.
func TestColumnsOnADevice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	bin, files := simulated(ctx, t, "columns", 1)
	for devices, want := range map[string]string{files[0]: `^(column \d: all 1000 elements from 20 to 20, .*\n){3}$`,
		"/dev/null": `^$`} {
		run := exec.CommandContext(ctx, bin, "-device", "cuda")
		run.Env = append(os.Environ(), "SHOAL_CUDA_SIMULATE="+devices)
		out, err := run.Output()
		if (err == nil) != (devices == files[0]) || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: %v\n%s\nwant %s", devices, err, out, want)
		}
	}
}

// TestDevices runs the example without a device, and on two simulated ones, which are sparse files.
func TestDevices(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	bin, files := simulated(ctx, t, "devices", 2)
	for name, c := range map[string]struct{ devices, even, odd string }{
		"the host":            {"/dev/null", "cpu", "cpu"},
		"two simulated GPUs":  {files[0] + "," + files[1], "cuda:0", "cuda:1"},
		"one for all workers": {files[0], "cuda:0", "cuda:0"},
	} {
		run := exec.CommandContext(ctx, bin)
		run.Env = append(os.Environ(), "SHOAL_CUDA_SIMULATE="+c.devices)
		out, err := run.Output()
		want := `^(rank [02] on ` + c.even + `: 100 digits make 3\.9\d\n|rank [13] on ` + c.odd +
			`: 100 digits make 3\.9\d\n){4}` +
			`a million numbers went from ` + c.even + ` by cpu and ` + c.odd + ` to ` + c.even +
			`, all as they were: true\n` +
			`by queue and pipe they stayed the same memory on ` + c.even + `: true\n$`
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, out, want)
		}
	}
}
