package standin

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// IncludeKey is the environment variable that lists the folders of vendors' headers, as PATH does
// its own. Unless it is set, they are looked for where CUDA's installer puts them.
const IncludeKey = "SHOAL_CUDA_INCLUDE"

// Compile makes a shared library of a source. It skips the test where there is no C compiler, or no
// source, as on a machine that has the test alone.
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

// Vendor returns the flags by which a stand-in has its types from a vendor's header. It skips the
// test where that is not found.
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
