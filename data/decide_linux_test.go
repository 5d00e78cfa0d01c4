package data

import (
	"context"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/tensor"
)

// few is a set whose sample i is the number i.
type few int

func init() { Register[few]("test.few") }

func (n few) Len() int { return int(n) }
func (n few) Get(_ context.Context, i int) (Sample, error) {
	return Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// told is an auto whose goroutines are said to need so long for a sample.
func told(t *testing.T, each time.Duration) *auto {
	l := NewLoader(few(8), Options{BatchSize: 4, Workers: 1, Kind: Auto})
	a := newAuto(l, station{Source: few(8), Workers: 1})
	t.Cleanup(a.close)
	l.meter.did(trialSamples, outcome{Kind: Goroutines, Took: trialSamples * each}, nil)
	if a.pick() != nil {
		t.Error("a job goes to processes that were not started")
	}
	a.trying.Wait()
	return a
}

func TestAutoTriesProcessesWhereTheyMayPay(t *testing.T) {
	if a := told(t, worthwhile-1); a.phase != decided || a.apart != nil || a.l.Kind() != Goroutines {
		t.Errorf("samples that cost little: phase %d, kind %v", a.phase, a.l.Kind())
	}
	if a := told(t, worthwhile); a.phase != trial || a.apart == nil || a.l.Kind() != Auto {
		t.Errorf("samples that cost much: phase %d, kind %v", a.phase, a.l.Kind())
	}
}

// TestAutoEndsNoProcessesWithAJobOnItsWay: the trial may end in another goroutine while a job is being handed over.
func TestAutoEndsNoProcessesWithAJobOnItsWay(t *testing.T) {
	a := told(t, time.Second)
	p := a.pick()
	if p == nil {
		t.Fatal("no processes")
	}
	a.l.meter.did(trialSamples, outcome{Kind: Processes, Took: time.Hour}, nil)
	if a.pick() != nil || a.l.Kind() != Goroutines {
		t.Errorf("the trial has not ended: kind %v", a.l.Kind())
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
	w := &window{l: a.l, ctx: t.Context(), crew: a, wake: make(chan struct{}, 1), over: true}
	s := &slot{indices: []int{5, 3}, open: 1}
	p.submit(&job{w: w, s: s, n: 2, kind: makeJob})
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
