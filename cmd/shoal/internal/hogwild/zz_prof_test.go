package hogwild

import (
	"context"
	"os"
	"testing"
	"time"
	"fmt"
	"syscall"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestZZProf(t *testing.T) {
	if os.Getenv("PROF") == "" { t.Skip() }
	kernel.SetThreads(1)
	set := data.Digits(6400, 1)
	tensor.ManualSeed(1)
	net := newNet(1)
	w := &worker{
		job:    job{Net: net, BatchSize: 64},
		loader: data.NewLoader(set, data.Options{BatchSize: 64, Shuffle: true, Transform: pixels}),
		scope:  autograd.NewScope(),
		sgd:    optim.NewSGD(net.Params(), optim.SGDOptions{LR: .01, Momentum: .5}),
	}
	for e := range 20 {
		c, n := cpu(), 0
		begin := time.Now()
		for b, err := range w.loader.Epoch(context.Background(), e) {
			if err != nil { t.Fatal(err) }
			w.step(b)
			n++
		}
		fmt.Printf("%d steps: %v CPU, %v wall each\n", n, (cpu()-c)/time.Duration(n), time.Since(begin)/time.Duration(n))
	}
}
