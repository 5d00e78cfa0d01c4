package data

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// few is a set whose sample i is the number i.
type few int

func init() {
	codec.RegisterType[few]("test.few")
	codec.RegisterType[slowToOpen]("test.slowToOpen")
}

func (n few) Len() int { return int(n) }
func (n few) Get(_ context.Context, i int) (Sample, error) {
	return Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// told is an auto whose goroutines are said to need so long for a sample.
func told(t *testing.T, each time.Duration) *autoExecutor {
	l := NewLoader(few(8), Options{BatchSize: 4, Workers: 1, Kind: Auto})
	a := newAutoExecutor(l, workerConfig{Source: few(8), Workers: 1})
	t.Cleanup(a.close)
	l.meter.countRequest(trialSamples, fetchResult{Kind: Goroutines, Took: trialSamples * each}, nil)
	if a.pickProcesses() != nil {
		t.Error("a job goes to processes that were not started")
	}
	a.trying.Wait()
	return a
}

func TestAuto_TriesProcessesWhereTheyMayPay(t *testing.T) {
	if a := told(t, worthwhile-1); a.phase != decided || a.apart != nil || a.l.Stats().Kind != Goroutines {
		t.Errorf("samples that cost little: phase %d, kind %v", a.phase, a.l.Stats().Kind)
	}
	if a := told(t, worthwhile); a.phase != trial || a.apart == nil || a.l.Stats().Kind != Auto {
		t.Errorf("samples that cost much: phase %d, kind %v", a.phase, a.l.Stats().Kind)
	}
}

// TestAuto_EndsNoProcessesWithAFetchOnItsWay: the trial may end in another goroutine while a
// request is being handed over.
func TestAuto_EndsNoProcessesWithAFetchOnItsWay(t *testing.T) {
	a := told(t, time.Second)
	p := a.pickProcesses()
	if p == nil {
		t.Fatal("no processes")
	}
	a.l.meter.countRequest(trialSamples, fetchResult{Kind: Processes, Took: time.Hour}, nil)
	if a.pickProcesses() != nil || a.l.Stats().Kind != Goroutines {
		t.Errorf("the trial has not ended: kind %v", a.l.Stats().Kind)
	}
	ended := make(chan struct{})
	go func() {
		a.trying.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		t.Fatal("the processes have ended before the job came")
	case <-time.After(100 * time.Millisecond): // they never do; if they did, this was time enough
	}
	w := &prefetcher{l: a.l, ctx: t.Context(), executor: a, wake: make(chan struct{}, 1), over: true}
	s := &batchState{indices: []int{5, 3}, phase: making, requests: 1}
	p.submit(&fetch{p: w, b: s, n: 2, kind: fetchBatch})
	a.handing.Done()
	<-w.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.err != nil || len(s.batch) != 1 || tensor.At[int64](s.batch[0], 1) != 3 {
		t.Errorf("the job: %v, %v", s.batch, s.err)
	}
	closeAll(s.batch)
	<-ended
}

// slowToOpen is a set that other processes than that of the number do not come to the end of
// opening.
type slowToOpen int

func (s slowToOpen) Len() int                                       { return few(8).Len() }
func (s slowToOpen) Get(ctx context.Context, i int) (Sample, error) { return few(8).Get(ctx, i) }
func (s slowToOpen) Open(ctx context.Context) (any, error) {
	if int(s) != os.Getpid() {
		<-ctx.Done()
	}
	return s, nil
}

// TestAuto_ClosesWhileProcessesStart: leaving a loop does not wait until a trial could begin.
func TestAuto_ClosesWhileProcessesStart(t *testing.T) {
	set := slowToOpen(os.Getpid())
	l := NewLoader(set, Options{BatchSize: 4, Workers: 1, Kind: Auto})
	a := newAutoExecutor(l, workerConfig{Source: set, Workers: 1})
	l.meter.countRequest(trialSamples, fetchResult{Kind: Goroutines, Took: time.Minute}, nil)
	if a.pickProcesses() != nil || a.phase != coming {
		t.Errorf("phase %d", a.phase)
	}
	closed := make(chan struct{})
	go func() {
		a.close()
		close(closed)
	}()
	select {
	case <-closed:
		if l.Stats().Kind != Auto {
			t.Errorf("kind %v: nothing was measured", l.Stats().Kind)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("close waits for the data set to be opened")
	}
}
