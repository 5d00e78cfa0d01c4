package rules_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
)

var real = flag.Bool("rules.real", false, "ask the driver of this machine, not the simulator")

// A rule is a question and its answer.
type rule struct {
	step  string // of the plan
	asked string
	want  string // what the simulator answers; nothing where each device has an answer of its own
	lax   string // what drivers answer as well, where the simulator is the stricter one on purpose
	needs int    // devices, if it is more than one
	env   string // of the process that is asked, if that matters
	ask   func(p *process) string
}

var rules = slices.Concat(attributes, threads, descriptors, deaths, legacy, atomics, costs, shares, faults, queues,
	collectives)

const (
	mib = 1 << 20
	// patience is how long an answer may take, and budget how long all of them: what hangs must not
	// keep the rest from being asked.
	patience = time.Minute
	budget   = 4 * time.Minute
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleKey)
	if role == "" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // for the context, and for the helpers, which end with the thread that started them
	play(role)
}

// TestRules asks what has an answer in the table.
func TestRules(t *testing.T) { ask(t, func(r rule) bool { return r.want != "" }) }

// TestFigures asks what each device answers in its own way.
func TestFigures(t *testing.T) { ask(t, func(r rule) bool { return r.want == "" }) }

func ask(t *testing.T, which func(r rule) bool) {
	begin := time.Now()
	have := devices(t)
	for i, r := range rules {
		if !which(r) {
			continue
		}
		t.Run(r.step, func(t *testing.T) {
			switch {
			case have < r.needs:
				report("%s  %s\n    not asked: needs %d devices, and there are %d", r.step, r.asked, r.needs, have)
			case *real && time.Since(begin) > budget:
				t.Errorf("%s was not asked: there is no time left", r.asked)
			default:
				said, failed := answer(t, i)
				judge(t, r, said, failed)
			}
		})
	}
}

// judge compares an answer. That of a figure is any that is none.
func judge(t *testing.T, r rule, said string, failed bool) {
	agrees := ""
	switch {
	case said == r.want:
		agrees = "; the simulator agrees"
	case *real && said == r.lax && r.lax != "":
		agrees = "; the simulator is stricter: it " + r.want
		r.want = said
	}
	report("%s  %s\n    %s%s", r.step, r.asked, said, agrees)
	switch {
	case r.want == "" && failed:
		t.Errorf("%s: %s", r.asked, said)
	case r.want != "" && said != r.want:
		report("DISAGREES  %s, %s: %s; the simulator: %s", r.step, r.asked, said, r.want)
		t.Errorf("%s: %s, want %s", r.asked, said, r.want)
	}
}

// report writes what becomes a part of the suite's report.
func report(format string, args ...any) {
	if testing.Verbose() {
		fmt.Printf(format+"\n", args...)
	}
}

// load returns the driver of the devices at these paths, or of this machine if there are none.
func load(paths string) (cudriver.Driver, error) {
	if paths != "" {
		return sim.New(strings.Split(paths, ",")), nil
	}
	return cudriver.Load()
}

// devices returns how many there are.
func devices(t *testing.T) int {
	if !*real {
		return simulated
	}
	d, err := load(os.Getenv(cuda.SimulateKey))
	if err == nil {
		err = d.Init()
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := d.DeviceCount()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	simulated = 2
	simulates = 256 * mib
)

// answer has a process answer a question.
func answer(t *testing.T, question int) (said string, failed bool) {
	paths := os.Getenv(cuda.SimulateKey) // what stands for this machine where one tries how all that goes
	if !*real {
		made, err := sim.Create(simulated, simulates)
		if err != nil {
			t.Fatal(err)
		}
		defer made.Close()
		paths = strings.Join(made.Paths(), ",")
	}
	o, err := startProcess(fmt.Sprint(question), paths, rules[question].env, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.kill()
	text, _, err := o.line.hear()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("hangs: ended after %v", patience), true
	case err != nil:
		return "dies: " + o.awaitExit(), true
	}
	return strings.CutPrefix(text, failure)
}
