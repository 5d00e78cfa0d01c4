package doctor_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/doctor"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

const watchdog = 60 * time.Second

// busy keeps all threads busy that it may.
var busy = shoal.Register("busy", func(ctx context.Context, _ int, ready *ipc.Sender[int]) error {
	defer ready.Close()
	for range shoal.Threads() {
		go func() {
			for ctx.Err() == nil {
			}
		}()
	}
	if err := ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

func TestOversubscribedDomainIsSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	ready, err := ipc.NewQueue[int](4)
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Threads: shoal.Threads() + 1})
	defer g.Close()
	pids := make(map[int]bool)
	for range 2 {
		busy.Go(g, ready.Sender())
	}
	for range 2 {
		pid, err := ready.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pids[pid] = true
	}
	r, err := doctor.Examine(ctx, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, d := range r.Domains {
		if len(d.Processes) == 0 || d.Processes[0].PID != os.Getpid() {
			continue
		}
		for _, p := range d.Processes[1:] {
			if pids[p.PID] {
				own++
			}
			if p.GOMAXPROCS != shoal.Threads()+1 || p.Threads < 2 ||
				p.Name != fmt.Sprintf("busy %d", own-1) && !strings.HasPrefix(p.Name, "busy ") {
				t.Errorf("%+v", p)
			}
		}
	}
	if own != 2 {
		t.Errorf("%d of 2 workers are found in %+v", own, r.Domains)
	}
	if !strings.Contains(strings.Join(r.Advice, "\n"), "set Options.Threads to") &&
		!strings.Contains(strings.Join(r.Advice, "\n"), "workers on") {
		t.Errorf("advice: %q", r.Advice)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"all calls work", "floor(", "usable", "involuntary/s", "recommended changes:",
		"busy 0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// well is a report of a machine on which nothing is to be done.
func well() *doctor.Report {
	return &doctor.Report{
		Kernel: doctor.Kernel{Release: "6.1.0-generic"},
		CPUs:   doctor.CPUs{Machine: 8, Usable: 4},
		Memory: doctor.Memory{Total: 8 << 30, Available: 8 << 30, CgroupLimit: -1, Budget: 4 << 30,
			AddressSpace: -1, FileSize: -1, OpenFiles: 1024},
		Census: domains.Census{Machine: domains.Machine{Seconds: 1}},
	}
}

func workers(n, threads int) []domains.Process {
	all := []domains.Process{{PID: 1, Name: "main"}}
	for i := range n {
		all = append(all, domains.Process{PID: 2 + i, GOMAXPROCS: threads})
	}
	return all
}

func TestAdvice(t *testing.T) {
	for want, change := range map[string]func(r *doctor.Report){
		"":           func(*doctor.Report) {},
		"is too old": func(r *doctor.Report) { r.Kernel.Release = "5.9.16" },
		"seccomp": func(r *doctor.Report) {
			r.Kernel.Missing = []doctor.Call{{Name: "pidfd_open", Err: "no"}}
		},
		"give the machine more memory": func(r *doctor.Report) { r.Memory.Budget = 100 << 20 },
		"give the container": func(r *doctor.Report) {
			r.Memory.Budget, r.Memory.CgroupLimit = 100<<20, 1<<30
		},
		"ulimit -v": func(r *doctor.Report) { r.Memory.AddressSpace = 1 << 30 },
		"ulimit -f": func(r *doctor.Report) { r.Memory.FileSize = 0 },
		"ulimit -n": func(r *doctor.Report) { r.Memory.OpenFiles = 20 },
		"start 4 with one thread each": func(r *doctor.Report) {
			r.Domains = []domains.Domain{{Address: "@a", Processes: workers(5, 1)}}
		},
		"set Options.Threads to 2, or": func(r *doctor.Report) {
			r.Domains = []domains.Domain{{Address: "@a", Processes: workers(2, 4)}}
		},
		"SetThreads in a worker, to 2": func(r *doctor.Report) {
			d := domains.Domain{Address: "@a", Processes: workers(2, 2)}
			d.Processes[1].InvoluntaryPerSecond, d.Processes[1].Runnable = 2000, 6
			r.Domains = []domains.Domain{d}
		},
		"raise Budget with shoal.SetMemory": func(r *doctor.Report) {
			r.Domains = []domains.Domain{{Address: "@a", Limit: 1 << 30, Committed: 1 << 30, Processes: workers(1, 1)}}
		},
		"other programs": func(r *doctor.Report) { r.Machine.InvoluntaryPerSecond = 1e4 },
	} {
		r := well()
		change(r)
		got := doctor.Advise(r)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("got %q, want one with %q", got, want)
		}
	}
	r := well()
	r.Domains = []domains.Domain{{Address: "@a", Processes: workers(4, 1)}, {Address: "@b", Error: "gone"}}
	if got := doctor.Advise(r); len(got) != 0 {
		t.Errorf("advice where none is needed: %q", got)
	}
}
