package main

import (
	"context"
	"fmt"
	"os"
	"sync"
)

const (
	clients = 6
	rounds  = 3  // each process is killed once per round
	between = 20 // answers between two kills
)

// A ledger counts the outcomes of requests, for several clients at once. The clients wait until
// their answers are received.
type ledger struct {
	mu                             sync.Mutex
	requests, failed, wrong, again int
	versions                       map[int]bool
	answers                        chan answer
}

// runDrill sends requests to the server at url while it kills one process after another, and
// prints the counts, including failed and wrong requests. It returns an error only if ctx ends.
func runDrill(ctx context.Context, url string) error {
	l := &ledger{versions: map[int]bool{}, answers: make(chan answer)}
	sends, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	for c := range clients {
		sending.Go(func() { l.send(sends, url, float32(c+1)) })
	}
	killed := map[int]bool{}
	for range rounds {
		for rank := range workers + 1 { // the last one is the reloader
			l.killWorker(ctx, rank, killed)
		}
	}
	l.awaitAnswers(ctx, clients*between) // answers of the replacements
	stop()
	sending.Wait()
	fmt.Printf("%d processes killed, %d versions, %d requests: %d failed, %d wrong, %d sent again\n",
		len(killed), len(l.versions), l.requests, l.failed, l.wrong, l.again)
	return ctx.Err()
}

// killWorker kills the worker of a rank, or the reloader if rank is workers, as soon as an answer
// reveals its process ID, which it adds to killed. It does not kill a process in killed. By then
// the process handles another request. After the kill, killWorker waits for [between] more
// answers. It returns early if ctx ends.
func (l *ledger) killWorker(ctx context.Context, rank int, killed map[int]bool) {
	for ctx.Err() == nil {
		a := l.awaitAnswers(ctx, 1)
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
	l.awaitAnswers(ctx, between)
}

// awaitAnswers waits for the next n answers and returns the last one. If ctx ends first, it returns
// early, with the last answer that it received, or with a zero one.
func (l *ledger) awaitAnswers(ctx context.Context, n int) (a answer) {
	for range n {
		select {
		case a = <-l.answers:
		case <-ctx.Done():
		}
	}
	return a
}
