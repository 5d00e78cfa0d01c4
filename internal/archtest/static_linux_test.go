package archtest_test

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/archtest"
)

// The environment is that of whoever runs the tests: with a C compiler this is the case that matters.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

func TestNothingBehindTheCoreIsDynamic(t *testing.T) {
	dirs, err := archtest.Core(module, houseFS)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".", "ipc", "wire", "shm", "internal/sys"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("%s is not in the core: %v", want, dirs)
		}
	}
	args := []string{"list", "-deps", "-f", "{{.ImportPath}} {{join .Imports \" \"}}"}
	for _, d := range dirs {
		args = append(args, "../../"+d)
	}
	var ways []string
	for line := range strings.Lines(goTool(t, args...)) {
		p := strings.Fields(line)
		if at := slices.IndexFunc(p[1:], archtest.IsDynamic); at >= 0 {
			ways = append(ways, p[0]+" imports "+p[at+1])
		}
	}
	if len(ways) > 0 {
		t.Errorf("behind the core %s: %s", strings.Join(ways, ", "), archtest.WhyStatic)
	}
}

func TestAProgramOfTheCoreIsStaticAndRuns(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "core")
	goTool(t, "build", "-o", bin, "./testdata/core")
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("the program asks for a loader, so it is dynamic: %s", archtest.WhyStatic)
		}
	}
	out, err := exec.CommandContext(t.Context(), bin).CombinedOutput()
	if err != nil || string(out) != "hello from 0\n" {
		t.Errorf("%q, %v", out, err)
	}
}
