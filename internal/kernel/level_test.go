package kernel_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// onEachLevel runs a test on every level of this machine.
func onEachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range kernel.Levels() {
		t.Run(level, func(t *testing.T) {
			t.Cleanup(kernel.Use(level))
			test(t)
		})
	}
}

// TestMain lets the test run itself as a program that says its level, or as one of which the
// instructions are counted.
func TestMain(m *testing.M) {
	if command := os.Getenv("COUNT"); command != "" {
		if err := runCounted(command); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("SAY_LEVEL") != "" {
		os.Stdout.WriteString(kernel.Level())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// said is what a program says of its level with a value of SHOAL_KERNELS.
func said(t *testing.T, value string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "SAY_LEVEL=1", "SHOAL_KERNELS="+value)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheEnvironmentForcesALevel(t *testing.T) {
	for _, level := range kernel.Levels() {
		if got, err := said(t, level); err != nil || got != level {
			t.Errorf("SHOAL_KERNELS=%s uses %q, %v", level, got, err)
		}
	}
	if got, err := said(t, ""); err != nil || got != kernel.Levels()[0] {
		t.Errorf("without SHOAL_KERNELS the level is %q, %v, want %s", got, err, kernel.Levels()[0])
	}
}

func TestALevelThatIsNotHereIsAnError(t *testing.T) {
	unknown := []string{"sse9", "AVX2", "portable "}
	for _, level := range []string{"avx2", "avx512"} {
		if !slices.Contains(kernel.Levels(), level) {
			unknown = append(unknown, level)
		}
	}
	for _, value := range unknown {
		got, err := said(t, value)
		if err == nil || !strings.Contains(got, "SHOAL_KERNELS="+value) || !strings.Contains(got, "portable") {
			t.Errorf("SHOAL_KERNELS=%q: %q, %v; want an error that names what there is", value, got, err)
		}
	}
}

// Same numbers whatever the goroutines, bit by bit, on every level: the kernels that split work
// with sums in it.
func TestResultsDoNotDependOnTheNumberOfGoroutines(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		results := func(threads int) (all [][]float32) {
			oneThread(t)
			kernel.SetThreads(threads)
			for _, trans := range []bool{false, true} {
				const m, n, k = 97, 150, 300
				c := make([]float32, m*n)
				lda, ldb := k, n
				if trans {
					lda, ldb = m, k
				}
				kernel.Gemm(trans, trans, m, n, k, 1.5, noise[float32](1, m*k), lda, noise[float32](2, k*n),
					ldb, 0, c, n)
				all = append(all, c)
			}
			s := conv2
			s.N, s.PadH, s.PadW = 21, 1, 2
			l := newLayer[float32](s)
			kernel.Conv2d(s, l.x, l.w, l.b, l.y, nil)
			kernel.Conv2dBackward(s, l.x, l.w, l.dy, l.dx, l.dw, l.db, nil)
			return append(all, l.y, l.dx, l.dw, l.db)
		}
		want := results(1)
		for threads := 2; threads <= 5; threads++ {
			for i, got := range results(threads) {
				if !slices.EqualFunc(got, want[i],
					func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Errorf("result %d with %d threads is not that with one", i, threads)
				}
			}
		}
	})
}

// onSomeMachine draws a level, and how many threads kernels may use, until the check ends.
func onSomeMachine(t *rapid.T) {
	t.Cleanup(kernel.Use(rapid.SampledFrom(kernel.Levels()).Draw(t, "level")))
	before := kernel.Threads()
	kernel.SetThreads(rapid.IntRange(1, 4).Draw(t, "threads"))
	t.Cleanup(func() { kernel.SetThreads(before) })
}
