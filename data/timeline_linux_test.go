package data_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

func init() {
	codec.RegisterType[mortal]("data_test.mortal")
	codec.RegisterType[stuck]("data_test.stuck")
}

// watched returns how to see the only timeline that is made after it was called, nil if there is
// none. Loaders of other tests may have theirs until the garbage collector finds them.
func watched(t *testing.T) func() *observe.TimelineView {
	t.Helper()
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, v := range d.Observe().Timelines {
		known[v.Block] = true
	}
	return func() (found *observe.TimelineView) {
		for _, v := range d.Observe().Timelines {
			if known[v.Block] {
				continue
			}
			if found != nil {
				t.Error("two timelines")
			}
			found = &v
		}
		return found
	}
}

func sum(all []int64) (total time.Duration) {
	for _, v := range all {
		total += time.Duration(v) * time.Microsecond
	}
	return total
}

func TestTimeline_ShowsWhatWorkersAndTheConsumerDo(t *testing.T) {
	for name, o := range map[string]data.Options{
		"goroutines": {Workers: 2}, "processes": {Workers: 2, Kind: data.Processes}, "consumer": {},
		"kept": {Workers: 2, Persistent: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoaltest.NoLeaks(t)
			timelineOf := watched(t)
			o.BatchSize = 20
			l := data.NewLoader(paced(400), o)
			defer l.Close()
			const use = 5 * time.Millisecond
			begin := time.Now()
			for epoch := range 2 { // the same timeline for both
				n := 0
				for batch, err := range l.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(use)
					v := timelineOf()
					if v == nil {
						t.Fatal("no timeline")
						return
					}
					if c := v.Consumer; c.State != "working" || c.Epoch != epoch || c.Batch != n ||
						c.PID != os.Getpid() ||
						c.For < use.Microseconds() {
						t.Fatalf("in batch %d of epoch %d the consumer is %+v", n, epoch, c)
					}
					batch.Close()
					n++
				}
			}
			v := timelineOf()
			life := time.Since(begin)
			if v.Taken != 40 || len(v.Batches) != 32 || v.Workers != o.Workers || len(v.Tracks) != max(1, o.Workers) {
				t.Fatalf("%+v", v)
			}
			for i, b := range v.Batches {
				k := i + 8
				if b.Epoch != k/20 || b.Batch != k%20 {
					t.Errorf("batch %d of epoch %d is at place %d", b.Batch, b.Epoch, k)
				}
				if b.Asked < b.Began || b.Began < b.Ready || b.Ready < b.Taken || b.Want < b.Taken {
					t.Errorf("its way is %+v", b)
				}
			}
			if got := sum(v.Consumer.Working); v.Consumer.State != "ended" || got < 40*use || got > life {
				t.Errorf("the consumer is %s and has worked for %v of %v", v.Consumer.State, got, life)
			}
			if idle := sum(v.Consumer.Idle); o.Workers == 0 && idle < 800*100*time.Microsecond {
				t.Errorf("the consumer has loaded for %v", idle)
			}
			var worked, all time.Duration
			for _, k := range v.Tracks {
				here := k.PID == os.Getpid()
				if here == (o.Kind == data.Processes) || k.Deaths != 0 {
					t.Errorf("%+v", k)
				}
				worked += sum(k.Working)
				all += sum(k.Working) + sum(k.Idle) + sum(k.Blocked)
			}
			if worked < 800*100*time.Microsecond || all > life*time.Duration(max(1, o.Workers)) {
				t.Errorf("workers have worked for %v, and tell of %v; life is %v", worked, all, life)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if v := timelineOf(); v != nil {
				t.Errorf("after Close there is %+v", v)
			}
		})
	}
}

// stuck is samples of which the last one never comes.
type stuck int

func (n stuck) Len() int { return int(n) }

func (n stuck) Get(ctx context.Context, i int) (data.Sample, error) {
	if i == int(n)-1 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

func TestTimeline_OfAWorkerThatHangs(t *testing.T) {
	shoaltest.NoLeaks(t)
	timelineOf := watched(t)
	l := data.NewLoader(stuck(40), data.Options{BatchSize: 10, Workers: 1, Timeout: 700 * time.Millisecond})
	defer l.Close()
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			v := timelineOf()
			if v == nil || len(v.Tracks) != 1 || v.Consumer.State != "idle" {
				continue
			}
			if k := v.Tracks[0]; k.State == "working" && k.Batch == 3 && k.For > 300_000 &&
				sum(k.Working) >= 300*time.Millisecond {
				return
			}
		}
		t.Error("nobody sees that the worker is at batch 3")
	}()
	n := 0
	for _, err := range l.Batches(t.Context()) {
		if err != nil {
			if !errors.Is(err, data.ErrTimeout) {
				t.Error(err)
			}
			break
		}
		n++
	}
	<-seen
	if n != 3 {
		t.Errorf("%d batches", n)
	}
}

// mortal is samples of which one kills the worker that loads it first.
type mortal string // a file, which is there after that

func (m mortal) Len() int { return 60 }

func (m mortal) Get(_ context.Context, i int) (data.Sample, error) {
	if _, err := os.Stat(string(m)); i == 30 && err != nil {
		os.WriteFile(string(m), nil, 0o600)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

func TestTimeline_AWorkerThatIsKilledIsCounted(t *testing.T) {
	shoaltest.NoLeaks(t)
	timelineOf := watched(t)
	l := data.NewLoader(mortal(t.TempDir()+"/killed"), data.Options{BatchSize: 10, Workers: 1, Kind: data.Processes})
	defer l.Close()
	n := 0
	for batch, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		batch.Close()
	}
	v := timelineOf()
	if n != 6 || v == nil || len(v.Tracks) != 1 || v.Tracks[0].Deaths != 1 || v.Tracks[0].Died == 0 {
		t.Errorf("%d batches, %+v", n, v)
	}
}
