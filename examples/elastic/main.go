// Command elastic trains with workers that come and go. The parameters are versioned values in a
// NATS store, and each worker applies the gradients of its jobs to the newest version. Two of four
// workers are killed and two others join; every gradient must still be applied exactly once. It
// requires a broker:
//
//	shoal broker
//	go run ./examples/elastic URL          train with four workers
//	go run ./examples/elastic -join URL    add a worker, also from another machine
//
// It prints the number of applied jobs and versions, and the test digits that are right.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/shoal-mp/shoal"
)

const jobs = 600 // of 32 digits each

// A model is the value in the store. A compare-and-swap replaces it as a whole, so the parameters
// include the gradient of a job if and only if Applied has the job.
type model struct {
	Params  []float32
	Applied []bool
	Stale   int // sum over all jobs of the versions between reading and applying
}

func (m model) appliedCount() (n int) {
	for _, done := range m.Applied {
		if done {
			n++
		}
	}
	return n
}

type task struct {
	URL            string
	JobsUntilDeath int
}

var worker = shoal.Register("worker", func(ctx context.Context, _ int, t task) error {
	return processJobs(ctx, t.URL, t.JobsUntilDeath)
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	if len(os.Args) == 3 && os.Args[1] == "-join" {
		return processJobs(ctx, os.Args[2], 0)
	}
	if len(os.Args) != 2 {
		return errors.New("elastic URL, such as nats://127.0.0.1:4222, which shoal broker prints")
	}
	c, err := connect(ctx, os.Args[1])
	if err != nil {
		return err
	}
	defer c.deleteState()
	if _, err := c.params.Create(ctx, "net", model{Params: flattenParams(newNet()),
		Applied: make([]bool, jobs)}); err != nil {
		return err
	}
	all := make([]int, jobs)
	for i := range all {
		all[i] = i
	}
	if _, err := c.jobs.PutN(ctx, all); err != nil {
		return err
	}
	if err := c.jobs.Finish(ctx); err != nil {
		return err
	}
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 6})
	defer g.Close()
	var team []*shoal.Process
	for i := range 4 {
		team = append(team, worker.Go(g, task{os.Args[1], []int{20, 40, 0, 0}[i]})) // two of them die
	}
	for e, err := range c.params.Watch(ctx, "net") {
		if err != nil {
			return err
		}
		n := e.Value.appliedCount()
		if late := len(team) - 4; late < 2 && n > jobs/4*(late+1) {
			team = append(team, worker.Go(g, task{URL: os.Args[1]}))
		}
		if n == jobs {
			return reportResult(ctx, c, team)
		}
	}
	return ctx.Err()
}
