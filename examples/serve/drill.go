package main

import (
	"context"
	"fmt"
	"os"
	"sync"
)

const (
	clients = 6
	rounds  = 3  // in which each process is killed
	between = 20 // answers from one kill to the next
)

// A ledger is what has become of the requests.
type ledger struct {
	mu                             sync.Mutex
	requests, failed, wrong, again int
	versions                       map[int]bool
	answers                        chan answer
}

// drill sends requests while one process after the other is killed, and says what has become of
// them.
func drill(ctx context.Context, url string) error {
	l := &ledger{versions: map[int]bool{}, answers: make(chan answer)}
	sends, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	for c := range clients {
		sending.Go(func() { l.send(sends, url, float32(c+1)) })
	}
	killed := map[int]bool{}
	for range rounds {
		for rank := range workers + 1 { // the last is who reloads
			l.kill(ctx, rank, killed)
		}
	}
	l.await(ctx, clients*between) // by those that took their places
	stop()
	sending.Wait()
	fmt.Printf("%d processes killed, %d versions, %d requests: %d failed, %d wrong, %d sent again\n",
		len(killed), len(l.versions), l.requests, l.failed, l.wrong, l.again)
	return ctx.Err()
}

// kill kills the worker with that rank, or the process that reloads, once there is an answer by
// which it can be known. It is at another request by then.
func (l *ledger) kill(ctx context.Context, rank int, killed map[int]bool) {
	for ctx.Err() == nil {
		a := l.await(ctx, 1)
		pid := a.PID
		if rank == workers {
			pid = a.ReloadedByPID
		}
		if (a.Rank == rank || rank == workers) && !killed[pid] && pid > 0 && pid != os.Getpid() {
			killed[pid] = true
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
			break
		}
	}
	l.await(ctx, between)
}

// await returns the last of n answers.
func (l *ledger) await(ctx context.Context, n int) (a answer) {
	for range n {
		select {
		case a = <-l.answers:
		case <-ctx.Done():
		}
	}
	return a
}
