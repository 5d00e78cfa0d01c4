package mpi_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

// figures has TestHosts_Figures measure, for so many rounds.
var figures = flag.Int("mpi.figures", 0, "rounds of TestHosts_Figures, which measures calls by the library and "+
	"by hosts")

func init() {
	roles["figures"] = func(ctx context.Context) error { return joined(ctx, measure) }
}

// figureSizes are in bytes.
var figureSizes = []int{4, 4 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20}

// measure prints how long calls take, each between barriers: nine in ten take longer. Other
// programs of the machine make calls slower, and none quicker.
func measure(ctx context.Context, g *dist.Group) error {
	for _, size := range figureSizes {
		t := tensor.Ones(tensor.Float32, size/4)
		part := tensor.Ones(tensor.Float32, max(1, size/4/g.Size()))
		all := tensor.New(tensor.Float32, part.Numel()*g.Size())
		calls := map[string]func() error{
			"barrier":    func() error { return g.Barrier(ctx) },
			"all_reduce": func() error { return g.AllReduce(ctx, dist.Sum, t) },
			"reduce":     func() error { return g.Reduce(ctx, 0, dist.Sum, t) },
			"broadcast":  func() error { return g.Broadcast(ctx, 0, t) },
			"all_gather": func() error { return g.AllGather(ctx, all, part) },
		}
		names := []string{"all_reduce", "reduce", "broadcast", "all_gather"}
		if size == figureSizes[0] {
			names = append(names, "barrier")
		}
		for _, name := range names {
			var took []time.Duration
			times := min(40, max(5, 16<<20/size))
			for i := range times + 2 {
				if err := g.Barrier(ctx); err != nil {
					return err
				}
				begin := time.Now()
				if err := calls[name](); err != nil {
					return err
				}
				if err := g.Barrier(ctx); err != nil { // all have it
					return err
				}
				if i >= 2 {
					took = append(took, time.Since(begin))
				}
			}
			slices.Sort(took)
			if g.Rank() == 0 {
				fmt.Printf("figure %s %d %d\n", name, size, took[len(took)/10].Nanoseconds())
			}
		}
	}
	return nil
}

// What a call takes by the library alone and by hosts, with two ranks on each of two hosts.
func TestHosts_Figures(t *testing.T) {
	if *figures == 0 {
		t.Skip("only with -mpi.figures")
	}
	names := strings.Fields(os.Getenv("SHOAL_HOSTS"))
	each(t, func(t *testing.T, l launcher) {
		l.limit = 5 * time.Minute
		if len(names) > 1 {
			l = spread(t, l, names, []int{2, 2}, false)
			if l.name == "Open MPI" { // it does not know that the hosts have the same processors
				l.flags = append(l.flags, "--mca", "mpi_yield_when_idle", "1")
			}
		}
		took := map[string]map[string][]float64{"0": {}, "1": {}}
		var order []string
		for range *figures {
			for way := range took {
				out, err := l.start(t, "figures", 4, "SHOAL_DIST_HIERARCHICAL="+way)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for line := range strings.Lines(out) {
					var name string
					var size, ns int
					if n, _ := fmt.Sscanf(line, "figure %s %d %d", &name, &size, &ns); n == 3 {
						key := fmt.Sprintf("%-10s %9d", name, size)
						if !slices.Contains(order, key) {
							order = append(order, key)
						}
						took[way][key] = append(took[way][key], float64(ns)/1e3)
					}
				}
			}
		}
		middle := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
		slices.Sort(order)
		for _, key := range order {
			plain, by := middle(took["0"][key]), middle(took["1"][key])
			t.Logf("%s  %10.1f µs by the library  %10.1f µs by hosts  %5.2f", key, plain, by, plain/by)
		}
	})
}
