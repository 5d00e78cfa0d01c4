package data

import (
	"context"
	"sync"
	"time"
)

// An autoExecutor begins with goroutines, tries processes if a sample is expensive enough, and
// keeps the kind with the lower cost per sample. Goroutines contend for the allocator, the garbage
// collector and the locks of decoders; processes do not.
type autoExecutor struct {
	l          *Loader
	s          workerConfig
	goroutines *goroutineExecutor
	trying     sync.WaitGroup  // goroutines that start and close the processes
	closed     context.Context // done after close
	end        context.CancelFunc

	mu      sync.Mutex
	phase   trialPhase
	apart   *processExecutor
	handing sync.WaitGroup // fetches being submitted to apart; closeAfterFetches must wait for them
	before  [kinds]cost    // costs when the trial began
}

type trialPhase int

const (
	alone   trialPhase = iota // measuring goroutines
	coming                    // still goroutines, while processes start
	trial                     // measuring processes
	decided                   // processes were chosen, or goroutines if apart is nil
)

const (
	kinds        = 2                      // Goroutines and Processes
	trialSamples = 64                     // samples needed to estimate a cost
	worthwhile   = 100 * time.Microsecond // cheaper samples are not worth a message to a process
	margin       = 0.9                    // processes must be faster by this factor
)

func newAutoExecutor(l *Loader, s workerConfig) *autoExecutor {
	a := &autoExecutor{l: l, s: s, goroutines: newGoroutineExecutor(s), before: l.meter.readCosts()}
	a.closed, a.end = context.WithCancel(context.Background())
	return a
}

func (a *autoExecutor) submit(j *fetch) {
	if p := a.pickProcesses(); p != nil {
		defer a.handing.Done()
		p.submit(j)
		return
	}
	a.goroutines.submit(j)
}

func (a *autoExecutor) runOne() bool { return a.goroutines.runOne() }

// pickProcesses returns the processes if they should run the next fetch, and nil for goroutines. If
// the result is not nil, the caller must call a.handing.Done after it has submitted the fetch.
func (a *autoExecutor) pickProcesses() *processExecutor {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.l.meter.readCosts()
	local, apart := now[Goroutines].minus(a.before[Goroutines]), now[Processes].minus(a.before[Processes])
	switch a.phase {
	case alone:
		if local.samples >= trialSamples {
			a.startTrial(local)
		}
	case trial:
		if apart.samples >= trialSamples {
			a.endTrial(apart.each() < time.Duration(margin*float64(local.each())))
		}
	}
	if a.phase < trial || a.apart == nil {
		return nil
	}
	a.handing.Add(1)
	return a.apart
}

// startTrial starts the processes in the background. If samples are too cheap for them, it
// chooses goroutines at once. local is the cost of goroutines so far. The caller must hold a.mu.
func (a *autoExecutor) startTrial(local cost) {
	if local.each() < worthwhile {
		a.endTrial(false)
		return
	}
	a.phase = coming
	a.trying.Go(func() {
		apart := a.s
		apart.Track = apart.Workers // the first tracks belong to the goroutines
		var p *processExecutor
		err := recoverPanic(func() (err error) { // encodes the data set, which runs user code
			p, err = newProcessExecutor(apart, a.l.opts.Process)
			return err
		})
		if err == nil {
			err = p.awaitReady(a.closed)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.phase != coming { // closed in the meantime
			if p != nil {
				a.trying.Go(p.close)
			}
			return
		}
		if err != nil { // for example, the Dataset cannot be sent
			if p != nil {
				a.trying.Go(p.close)
			}
			a.endTrial(false)
			return
		}
		a.apart, a.phase = p, trial
	})
}

// endTrial ends the trial and chooses processes, if processes is true, or goroutines. The caller
// must hold a.mu.
func (a *autoExecutor) endTrial(processes bool) {
	a.phase = decided
	kind := Goroutines
	if processes {
		kind = Processes
	}
	a.l.setKind(kind)
	if p := a.apart; p != nil && !processes {
		a.apart = nil
		a.trying.Go(func() {
			a.handing.Wait()
			p.closeAfterFetches()
		})
	}
}

func (a *autoExecutor) close() {
	a.mu.Lock()
	apart := a.apart
	a.phase, a.apart = decided, nil
	a.mu.Unlock()
	a.end()
	a.goroutines.close()
	if apart != nil {
		apart.close()
	}
	a.trying.Wait()
}

// A cost is the number of samples loaded by workers of one kind and the time they took.
type cost struct {
	samples int
	busy    time.Duration
}

func (c cost) minus(before cost) cost { return cost{c.samples - before.samples, c.busy - before.busy} }

func (c cost) each() time.Duration { return c.busy / time.Duration(max(1, c.samples)) }

// isBroken reports whether the processes are broken. A new executor then runs a new trial.
func (a *autoExecutor) isBroken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.apart != nil && a.apart.isBroken()
}
