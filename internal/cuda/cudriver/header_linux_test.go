//go:build amd64 || arm64

package cudriver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/standin"
)

// With the types of NVIDIA's own header the stand-in sees the same, so it has them right.
func TestDriver_EachCallIsNVIDIAs(t *testing.T) { callEach(t, standin.Vendor(t, "cuda.h")...) }

// The header means each function by its name that is bound, and each number by its name. What fails
// is a line of the compiler.
func TestDriver_EachNameAndNumberIsNVIDIAs(t *testing.T) {
	flags := standin.Vendor(t, "cuda.h")
	var c strings.Builder
	c.WriteString("#include <stddef.h>\n#include <cuda.h>\n#define NAMED(x) #x\n#define MEANT(x) NAMED(x)\n")
	for _, name := range cudriver.Symbols() {
		if name != "cuEventElapsedTime" { // see the stand-in
			fmt.Fprintf(&c, "_Static_assert(sizeof MEANT(%s) == sizeof %q, \"there is a later %[1]s\");\n", name, name)
		}
	}
	number := func(name string, n int) {
		fmt.Fprintf(&c, "_Static_assert(%s == %d, \"it is not %[2]d\");\n", name, n)
	}
	for n, name := range cudriver.Names() {
		number(name, int(n))
	}
	for name, n := range cudriver.Numbers {
		number(name, n)
	}
	for i, name := range []string{"CUmemLocation", "CUmemAllocationProp", "CUmemAccessDesc"} {
		number("sizeof("+name+")", int(cudriver.Sizes()[i]))
	}
	source := filepath.Join(t.TempDir(), "numbers.c")
	if err := os.WriteFile(source, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	standin.Compile(t, source, flags...)
}
