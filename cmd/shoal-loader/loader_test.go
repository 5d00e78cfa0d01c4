package main_test

import (
	"errors"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// snippet returns the first block of Python of a page after some text.
func snippet(t *testing.T, page, after string) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), after)
	_, rest, begun := strings.Cut(rest, "```python\n")
	code, _, ended := strings.Cut(rest, "```")
	if !ok || !begun || !ended {
		t.Fatalf("%s has no Python after %q", page, after)
	}
	return code
}

// pythons are those with PyTorch, of SHOAL_TORCH_PYTHONS or else python3.
func pythons(t *testing.T) (all []string) {
	t.Helper()
	paths := filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS"))
	if len(paths) == 0 {
		paths = []string{"python3"}
	}
	for _, path := range paths {
		if exec.Command(path, "-c", "import torch, numpy").Run() == nil {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		t.Skip("no PyTorch: python3 has none, and SHOAL_TORCH_PYTHONS names none (make interop installs one)")
	}
	return all
}

// home is a folder with the loader, built as the page says, and with the classes of the page.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Link(built(t), filepath.Join(dir, "loader")); err != nil {
		t.Fatal(err)
	}
	classes, _, _ := strings.Cut(snippet(t, "../../docs/torch.md", "## Ready-made loader"), "if __name__")
	classes += snippet(t, "../../docs/torch.md", "A stream")
	if err := os.WriteFile(filepath.Join(dir, "go.py"), []byte(classes), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// built builds the loader, once for all tests.
func built(t *testing.T) string {
	once.Do(func() {
		build := exec.Command("go", "build", "-o", filepath.Join(folder, "loader"), ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	return filepath.Join(folder, "loader")
}

var (
	once   sync.Once
	folder string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "shoal-loader-")
	if err != nil {
		panic(err)
	}
	folder = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestSamplesAreThosePythonReads compares whole epochs with Python's own reading of the same files.
func TestSamplesAreThosePythonReads(t *testing.T) {
	script, err := filepath.Abs("testdata/compare.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			dir := home(t)
			cmd := exec.CommandContext(t.Context(), python, script)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+dir)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, stderr.String())
			}
			t.Logf("the same: %s", strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", ", "))
			for _, name := range []string{"npy", "tokens 32 32", "tokens npy 64 64", "tokens jsonl", "jsonl",
				"kept", "jsonl columns", "jsonl pad", "jsonl pad columns", "jsonl nested", "no padding", "bad padding", "bad option",
				"bad line"} {
				if !regexp.MustCompile(`(?m)^` + name + `$`).Match(out) {
					t.Errorf("%s was not compared", name)
				}
			}
			for _, name := range []string{"parquet zstd", "parquet pad", "parquet pad columns", "parquet nested"} {
				if text := "\n" + string(out); !strings.Contains(text, "\nno pyarrow\n") &&
					!strings.Contains(text, "\n"+name+"\n") {
					t.Errorf("%s was not compared", name)
				}
			}
			if strings.Contains(stderr.String(), "Traceback") || strings.Contains(stderr.String(), "leaked") {
				t.Errorf("PyTorch complained:\n%s", stderr.String())
			}
		})
	}
}

// TestReadyMadeLoader_ItsScriptRuns runs the script of docs/torch.md unchanged, in a folder with
// its images. README.md and docs/pytorch.md must show the same script as each other, which the
// tests of the Python package run.
func TestReadyMadeLoader_ItsScriptRuns(t *testing.T) {
	script := snippet(t, "../../docs/torch.md", "## Ready-made loader")
	readme := snippet(t, "../../README.md", "## Data for a PyTorch script")
	if readme != snippet(t, "../../docs/pytorch.md", "## The first batch") {
		t.Error("README.md and docs/pytorch.md have different scripts")
	}
	pythons := pythons(t)
	dir := home(t)
	for i, class := range []string{"ant", "bee"} {
		folder := filepath.Join(dir, "train", class)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for k := range 2 + i {
			f, err := os.Create(filepath.Join(folder, string(rune('a'+k))+".png"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, 20+k, 30))), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, python := range pythons {
		cmd := exec.CommandContext(t.Context(), python, "train.py")
		cmd.Dir = dir
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(out), "torch.Size([5, 3, 224, 224]) tensor([") {
			t.Errorf("%s: %v\n%s%s", python, err, out, stderr.String())
		}
	}
}
