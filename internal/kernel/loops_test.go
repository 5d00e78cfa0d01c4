package kernel_test

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

var writeLoops = flag.Bool("kernel.loops", false, "write testdata/loops.txt, on amd64 with AVX-512")

// loopsFile lists the loops that amd64 has in assembly.
const loopsFile = "testdata/loops.txt"

// onlyAMD64 are the loops of amd64 that arm64 does not need: multiplications of 64-bit numbers with
// 128-bit results are instructions for general registers there, and Transpose turns whole squares.
var onlyAMD64 = []string{"congruence", "f32.transposeSixteen"}

// Every loop that amd64 has in assembly must be in assembly on arm64, too.
func TestEveryLoopExistsOnEachArchitecture(t *testing.T) {
	best := kernel.Levels()[0]
	got := kernel.AssemblyLoops(best)
	if *writeLoops {
		if best != "avx512" {
			t.Fatalf("the best level is %s, want avx512", best)
		}
		if err := os.WriteFile(loopsFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(loopsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(content))
	switch {
	case best == "avx512":
		if !slices.Equal(got, want) {
			t.Errorf("amd64 has the loops %v, and %s lists %v: run go test -run %s -kernel.loops", got, loopsFile,
				want, t.Name())
		}
	case runtime.GOARCH == "arm64" && best != "portable":
		got = append(got, onlyAMD64...)
		if !slices.Contains(kernel.Levels(), "neon-bf16") {
			got = append(got, "brain")
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s: no loop at level %s, want one: see Adding a kernel in docs/kernels.md", name, best)
			}
		}
	default:
		t.Skipf("the best level is %s, which has no list of loops", best)
	}
}
