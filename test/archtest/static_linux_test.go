package archtest_test

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/archtest"
)

// The environment is that of the tests: with a C compiler this is the case that
// matters.
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

func TestNothingBehindTheCoreOrTheCommandIsDynamic(t *testing.T) {
	dirs, err := archtest.Static(module, houseFS)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".", "ipc", "internal/codec", "internal/arena", "internal/sys", "cmd/shoal"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("%s is not among %v", want, dirs)
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
		t.Errorf("behind the core or the command %s: %s", strings.Join(ways, ", "), archtest.WhyStatic)
	}
}

func TestAProgramOfTheCoreAndTheCommandAreStaticAndRun(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		source string
		args   []string
		want   string // at the beginning of its output
	}{
		{"./testdata/core", nil, "hello from 0\n"},
		{"../../cmd/shoal", []string{"--help"}, "Usage:\n  shoal "},
	} {
		bin := filepath.Join(dir, filepath.Base(c.source))
		goTool(t, "build", "-o", bin, c.source)
		if asksForLoader(t, bin) {
			t.Errorf("%s asks for a loader, so it is dynamic: %s", c.source, archtest.WhyStatic)
		}
		if keepsMethods(t, bin) {
			t.Errorf("%s asks package reflect for methods by their names or numbers, or something that it "+
				"imports does. "+
				"So it has all methods of its types, and is some MB larger", c.source)
		}
		out, err := exec.CommandContext(t.Context(), bin, c.args...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), c.want) {
			t.Errorf("%s: %q, %v", c.source, out, err)
		}
	}
}

func asksForLoader(t *testing.T, bin string) bool {
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// keepsMethods reports whether the linker has kept all methods of all types, because it cannot know
// which ones package reflect is asked for.
func keepsMethods(t *testing.T, bin string) bool {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(s elf.Symbol) bool { return s.Name == "reflect.Value.MethodByName" })
}
