package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/nats"
)

// errApplied means that another worker applied the job and died before it acknowledged it.
var errApplied = errors.New("applied already")

type cluster struct {
	*nats.Conn
	params *nats.Store[model]
	jobs   *nats.Queue[int]
}

func connect(ctx context.Context, url string) (c cluster, err error) {
	if c.Conn, err = nats.Connect(ctx, url, nats.Options{}); err != nil {
		return c, err
	}
	c.params, err = nats.OpenStore[model](ctx, c.Conn, "elastic", nats.StoreOptions{})
	if err != nil {
		return c, errors.Join(err, c.Close())
	}
	c.jobs, err = nats.OpenQueue[int](ctx, c.Conn, "elastic", nats.QueueOptions{AckWait: time.Second})
	if err != nil {
		return c, errors.Join(err, c.Close())
	}
	return c, nil
}

// deleteState deletes the queue and the store from the broker, ignoring errors, and closes the
// connection.
func (c cluster) deleteState() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.DeleteQueue(ctx, "elastic")
	c.DeleteStore(ctx, "elastic")
	c.Close()
}

// processJobs connects to the broker at url and processes jobs until none is left. It
// acknowledges a job only after the store has its gradient. If jobsUntilDeath is not 0, the
// worker kills itself after that many jobs, between the update and the acknowledgement.
func processJobs(ctx context.Context, url string, jobsUntilDeath int) error {
	c, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close()
	digits := datasets.Digits(32*jobs/4, 1) // gives four epochs
	for d, err := range c.jobs.Deliveries(ctx) {
		if err != nil {
			return err
		}
		m, read, err := c.params.Get(ctx, "net")
		if err != nil {
			return err
		}
		grad, err := gradient(ctx, m.Params, digits, d.Value)
		if err != nil {
			return err
		}
		_, err = c.params.Update(ctx, "net", func(m model, version uint64) (model, error) {
			if m.Applied[d.Value] {
				return m, errApplied
			}
			for i, g := range grad {
				m.Params[i] -= .05 * g
			}
			m.Applied[d.Value], m.Stale = true, m.Stale+int(version-read)
			return m, nil
		})
		if err != nil && !errors.Is(err, errApplied) {
			return err
		}
		if jobsUntilDeath--; jobsUntilDeath == 0 {
			self, err := os.FindProcess(os.Getpid())
			return errors.Join(err, self.Kill())
		}
		// An expired job is redelivered to another worker, which detects that it is applied.
		if err := d.Ack(ctx); err != nil && !errors.Is(err, nats.ErrExpired) {
			return err
		}
	}
	return nil
}

// reportResult waits until all workers have exited or died, which means that all jobs are
// acknowledged. Then it tests and prints the result. It returns an error if ctx ends, or if the
// parameters cannot be read or tested, but none for a bad result.
func reportResult(ctx context.Context, c cluster, team []*shoal.Process) error {
	for slices.ContainsFunc(team, (*shoal.Process).Alive) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	m, version, err := c.params.Get(ctx, "net")
	if err != nil {
		return err
	}
	good, err := countCorrect(ctx, m.Params)
	fmt.Printf("%d jobs applied in %d versions by %d workers; %d of 1000 digits are right; a gradient was %.1f "+
		"versions old\n",
		m.appliedCount(), version-1, len(team), good, float64(m.Stale)/jobs)
	return err
}
