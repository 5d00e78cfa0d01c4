package cuda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/test/standin"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestLegacy_OthersShareTheMemoryOfAStandIn has PyTorch, CuPy and Numba be the other process where
// there is no GPU, with a libcuda.so.1 in C that shares memory and has no kernels. What shares it
// is theirs, and so is our binding of the driver. The interpreters are those of
// SHOAL_TORCH_PYTHONS, with colons between them.
func TestLegacy_OthersShareTheMemoryOfAStandIn(t *testing.T) {
	pythons := filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS"))
	if len(pythons) == 0 || *real {
		t.Skip("SHOAL_TORCH_PYTHONS names no interpreter: make interop does")
	}
	library := workingDriver(t)
	for _, python := range pythons {
		t.Run(python, func(t *testing.T) {
			self, err := os.Executable()
			testutil.NoError(t, err)
			again := exec.CommandContext(patient(t), self, "-test.run", "IsTheOtherProcess", "-test.v", "-cuda.real")
			again.Env = append(os.Environ(), "SHOAL_CUDA_PYTHON="+python, "LD_PRELOAD="+library,
				"LD_LIBRARY_PATH="+filepath.Dir(library))
			out, err := again.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
			if !bytes.Contains(out, []byte("\n--- PASS")) {
				t.Skipf("%s has no library for CUDA", python)
			}
		})
	}
}

// workingDriver compiles the stand-in, which is preloaded: PyTorch brings a libcudart of its own.
func workingDriver(t *testing.T) string {
	t.Helper()
	const source, name = "../internal/cuda/cudriver/testdata/", "libcuda.so.1"
	so := standin.Compile(t, source+"works.c", source+"cudart.c", "-Wl,-soname,"+name)
	named := filepath.Join(filepath.Dir(so), name)
	testutil.NoError(t, os.Rename(so, named))
	return named
}
