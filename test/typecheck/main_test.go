package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckSystem_FindsErrorsOfItsFiles has an error in a file that only Windows has, one in a test
// there, and one that only Windows sees in a file of all systems.
func TestCheckSystem_FindsErrorsOfItsFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                   "module example.com/m\n\ngo 1.27\n",
		"low/low.go":               "package low\n",
		"low/low_unix.go":          "//go:build unix\n\npackage low\n\nfunc Only() int { return 1 }\n",
		"low/low_windows.go":       "package low\n\nfunc only() int { return \"text\" }\n",
		"high/high.go":             "package high\n\nimport \"example.com/m/low\"\n\nvar V = low.Only()\n",
		"high/high_test.go":        "package high_test\n\nimport \"example.com/m/high\"\n\nvar _ = high.V\n",
		"low/test_windows_test.go": "package low\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Missing() }\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	if err := checkSystem("darwin", "arm64", []string{"./..."}); err != nil {
		t.Errorf("darwin: %v", err)
	}
	err := checkSystem("windows", "amd64", []string{"./..."})
	for _, want := range []string{
		"low_windows.go:3:", "undefined: low.Only", "test_windows_test.go:5:", "windows/amd64: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("windows: got %v, want %q in it", err, want)
		}
	}
	if err := checkSystem("darwin", "arm64", []string{"./nowhere"}); err == nil {
		t.Error("no error of a package that does not exist")
	}
}
