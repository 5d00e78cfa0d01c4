package standin

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// IncludeKey is the environment variable with the list of directories of vendor headers, separated
// as in PATH. If it is not set, the default directory of the CUDA installer is searched.
const IncludeKey = "SHOAL_CUDA_INCLUDE"

// Compile compiles a shared library from a source file and returns its path. The library is removed
// when the test ends. Compile skips the test if there is no C compiler or no source, and fails it
// if the source does not compile.
func Compile(t testing.TB, source string, flags ...string) (so string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: nobody there to check the bindings")
	}
	if _, err := os.Stat(source); err != nil {
		t.Skip(err)
	}
	so = filepath.Join(t.TempDir(), "libstandin.so")
	args := append(flags, "-shared", "-fPIC", "-Wall", "-Werror", "-o", so, source)
	if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return so
}

// Vendor returns the compiler flags that make a stand-in use the types of a vendor's header. It
// skips the test if the header is not found.
func Vendor(t testing.TB, header string) (flags []string) {
	t.Helper()
	found := false
	for _, dir := range filepath.SplitList(cmp.Or(os.Getenv(IncludeKey), "/usr/local/cuda/include")) {
		_, err := os.Stat(filepath.Join(dir, header))
		found = found || err == nil
		flags = append(flags, "-isystem", dir)
	}
	if !found {
		t.Skipf("no %s: %s names the folders of headers; make ptxas has some", header, IncludeKey)
	}
	return append(flags, "-DVENDOR", "-Wmissing-declarations")
}
