package data

import (
	"context"
	"sync"
	"time"
)

// An autoExecutor is an executor that begins with goroutines, tries processes where a sample takes
// long enough, and stays with what needs less time for one: goroutines get into each other's way at
// the allocator, the garbage collector or a lock of a decoder, and processes do not.
type autoExecutor struct {
	l          *Loader
	s          workerConfig
	goroutines *goroutineExecutor
	trying     sync.WaitGroup  // the start of the processes
	closed     context.Context // is done after close
	end        context.CancelFunc

	mu      sync.Mutex
	phase   trialPhase
	apart   *processExecutor
	handing sync.WaitGroup // requests on their way to apart, which must not be finished before they come
	before  [kinds]cost    // when the trial began
}

type trialPhase int

const (
	alone   trialPhase = iota // goroutines are being measured
	coming                    // so they are while processes start
	trial                     // processes are being measured
	decided                   // for processes, or for goroutines if there is no apart
)

const (
	kinds        = 2                      // Goroutines and Processes
	trialSamples = 64                     // are enough to know what one costs
	worthwhile   = 100 * time.Microsecond // a sample that costs less does not pay for being handed to a process
	margin       = 0.9                    // by how much processes have to be better
)

func newAutoExecutor(l *Loader, s workerConfig) *autoExecutor {
	a := &autoExecutor{l: l, s: s, goroutines: newGoroutineExecutor(s), before: l.meter.costs()}
	a.closed, a.end = context.WithCancel(context.Background())
	return a
}

func (a *autoExecutor) submit(j *fetch) {
	if p := a.pick(); p != nil {
		defer a.handing.Done()
		p.submit(j)
		return
	}
	a.goroutines.submit(j)
}

func (a *autoExecutor) step() bool { return a.goroutines.step() }

// pick returns the processes if they are to do the next request; it is being handed to them then.
func (a *autoExecutor) pick() *processExecutor {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.l.meter.costs()
	local, apart := now[Goroutines].since(a.before[Goroutines]), now[Processes].since(a.before[Processes])
	switch a.phase {
	case alone:
		if local.samples >= trialSamples {
			a.try(local)
		}
	case trial:
		if apart.samples >= trialSamples {
			a.decide(apart.each() < time.Duration(margin*float64(local.each())))
		}
	}
	if a.phase < trial || a.apart == nil {
		return nil
	}
	a.handing.Add(1)
	return a.apart
}

// try has processes started, if they may be worth it. mu is held.
func (a *autoExecutor) try(local cost) {
	if local.each() < worthwhile {
		a.decide(false)
		return
	}
	a.phase = coming
	a.trying.Go(func() {
		apart := a.s
		apart.Track = apart.Workers // goroutines have theirs until they have ended
		var p *processExecutor
		err := recovered(func() (err error) { // the data set writes itself to a message
			p, err = newProcessExecutor(apart, a.l.opts.Process)
			return err
		})
		if err == nil {
			err = p.ready(a.closed)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.phase != coming { // closed meanwhile
			if p != nil {
				a.trying.Go(p.close)
			}
			return
		}
		if err != nil { // the Dataset cannot go there, say
			if p != nil {
				a.trying.Go(p.close)
			}
			a.decide(false)
			return
		}
		a.apart, a.phase = p, trial
	})
}

// decide ends the trial. mu is held.
func (a *autoExecutor) decide(processes bool) {
	a.phase = decided
	kind := Goroutines
	if processes {
		kind = Processes
	}
	a.l.choose(kind)
	if p := a.apart; p != nil && !processes {
		a.apart = nil
		a.trying.Go(func() {
			a.handing.Wait()
			p.finish()
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

// A cost is how many samples workers of a kind have loaded, and how long that took them.
type cost struct {
	samples int
	busy    time.Duration
}

func (c cost) since(before cost) cost { return cost{c.samples - before.samples, c.busy - before.busy} }

func (c cost) each() time.Duration { return c.busy / time.Duration(max(1, c.samples)) }

// broken reports that of the processes: another trial may find them well again.
func (a *autoExecutor) broken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.apart != nil && a.apart.broken()
}
