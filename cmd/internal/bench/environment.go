package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
)

// An environment is where the measuring happens: the machine, and the domain of this process.
type environment struct {
	domain *arena.Domain
	quick  bool
	cpus   [2]int // for the two processes of a row; the same one twice where there is only one

	step func(name string)                  // shows what is done now
	note func(format string, values ...any) // says what a reader of the rows must know
}

func newEnvironment(quick bool) (*environment, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	cpus, err := sys.Affinity()
	if err != nil {
		return nil, err
	}
	return &environment{domain: d, quick: quick, cpus: [2]int{cpus[0], cpus[min(1, len(cpus)-1)]}}, nil
}

// alone reports whether there is one processor only, so that nobody can wait for another by
// spinning.
func (h *environment) alone() bool { return h.cpus[0] == h.cpus[1] }

// scale returns n, or what a quick run does of it.
func (h *environment) scale(n int) int {
	if h.quick {
		return max(n/1000, 1)
	}
	return n
}

// header says where the numbers come from.
func (h *environment) header(p *peer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, Linux %s, %d CPUs usable, %s\n", processor(), memory(), release(), sys.CPUs(),
		runtime.Version())
	fmt.Fprintf(&b, "processes of a pair on CPU %d and %d; GOMAXPROCS %d here, %d in each of two workers\n",
		h.cpus[0], h.cpus[1], runtime.GOMAXPROCS(0), max(shoal.Threads()/2, 1))
	if p != nil {
		fmt.Fprintf(&b, "against %s\n", p.hello)
	}
	if h.quick {
		b.WriteString("a quick run: the values mean nothing\n")
	}
	return b.String()
}

// processor returns the name of the processor's model.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func release() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(release))
}

func memory() string {
	m, err := sys.MemoryLimit()
	if err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%d GiB", (m.Total+1<<29)>>30)
}
