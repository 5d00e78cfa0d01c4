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

// An environment describes the machine and holds the domain of the current process. There is one
// for each call of [Run], which sets step and note.
type environment struct {
	domain *arena.Domain
	quick  bool
	cpus   [2]int // processors of the two processes of a pair; equal if there is only one

	step func(name string)                  // reports the current activity
	note func(format string, values ...any) // prints a remark for readers of the results
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

// isSingleCPU reports whether both processes of a pair run on the same processor. Spinning for
// the other process then only wastes time.
func (h *environment) isSingleCPU() bool { return h.cpus[0] == h.cpus[1] }

// scaleRounds returns n, or a thousandth of it in a quick run, at least 1.
func (h *environment) scaleRounds(n int) int {
	if h.quick {
		return max(n/1000, 1)
	}
	return n
}

// describeRun returns the lines about the machine, the software and the run that precede the
// results. p is the peer, or nil without one.
func (h *environment) describeRun(p *peer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, Linux %s, %d CPUs usable, %s\n", processorModel(), memoryText(), release(), sys.CPUs(),
		runtime.Version())
	fmt.Fprintf(&b, "processes of a pair on CPU %d and %d; GOMAXPROCS %d here, %d in each of two workers\n",
		h.cpus[0], h.cpus[1], runtime.GOMAXPROCS(0), max(shoal.Threads()/2, 1))
	if p != nil {
		fmt.Fprintf(&b, "against %s\n", p.hello)
	}
	if h.quick {
		b.WriteString("quick run: the values are meaningless\n")
	}
	return b.String()
}

// processorModel returns the model name of the processor, or GOARCH if /proc/cpuinfo lacks it.
func processorModel() string {
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

func memoryText() string {
	m, err := sys.MemoryLimit()
	if err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%d GiB", (m.Total+1<<29)>>30)
}
