package arena_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/test/testutil"
)

// timelines returns what an observer sees of the timelines.
func timelines(t *testing.T, d *arena.Domain, n int) []observe.TimelineView {
	t.Helper()
	all := d.Observe().Timelines
	if len(all) != n {
		t.Fatalf("%d timelines, want %d", len(all), n)
	}
	return all
}

func TestTimeline_TimeIsWhereItWasSpent(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d, begun := f.first, time.Now()
		l, err := d.NewTimeline(1, 1)
		testutil.NoError(t, err)
		if v := timelines(t, d, 1)[0]; v.Workers != 1 || len(v.Tracks) != 0 || v.Consumer.State != "" {
			t.Errorf("before anybody has begun: %+v", v)
		}
		now := time.Now()
		k := l.Track(1, now.Add(-4*time.Second))
		k.Turn(arena.Working, 7, now.Add(-3*time.Second))
		k.Turn(arena.Blocked, 7, now.Add(-2*time.Second))
		k.Turn(arena.Idle, 7, now.Add(-1500*time.Millisecond))
		k.Turn(arena.Working, 1<<32|8, now.Add(-time.Second))
		v := timelines(t, d, 1)[0]
		if len(v.Tracks) != 1 || v.Tracks[0].State != "working" || v.Tracks[0].Epoch != 1 || v.Tracks[0].Batch != 8 {
			t.Fatalf("%+v", v)
		}
		near := func(what string, all []int64, want time.Duration) {
			t.Helper()
			var got int64
			for _, n := range all {
				if got += n; n < 0 || n > v.Step {
					t.Errorf("%s: a step of %d µs has %d", what, v.Step, n)
				}
			}
			// a timeline reads two clocks when it is made, and others may run between the two
			if w, off := want.Microseconds(), time.Since(begun).Microseconds()+200; got < w-off || got > w+off {
				t.Errorf("%s: %d µs, want %d", what, got, w)
			}
		}
		near("working", v.Tracks[0].Working, 2*time.Second)
		near("blocked", v.Tracks[0].Blocked, 500*time.Millisecond)
		k.Turn(arena.Finished, 0, now.Add(-time.Second))
		v = timelines(t, d, 1)[0]
		near("idle at the end", v.Tracks[0].Idle, 1500*time.Millisecond)
		if l.Track(2, now) != nil || l.Track(-1, now) != nil {
			t.Error("there are more tracks than were made")
		}
		far, err := d.NewTimeline(0, 0)
		testutil.NoError(t, err)
		for i := range 100 {
			far.Passed(arena.Passage{Batch: uint64(i), Asked: far.Clock(now), Taken: far.Clock(now)})
		}
		v = timelines(t, d, 2)[1]
		if len(v.Batches) != 32 || v.Batches[0].Batch != 68 || v.Batches[31].Batch != 99 || v.Taken != 100 {
			t.Errorf("%+v", v.Batches)
		}
		testutil.NoError(t, l.Close())
		testutil.NoError(t, l.Close())
		testutil.NoError(t, far.Close())
		timelines(t, d, 0)
	})
}

func TestTimeline_AnotherWriterOfATrackIsADeath(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d, other := f.first, f.join()
		l, err := d.NewTimeline(1, 1)
		testutil.NoError(t, err)
		testutil.NoError(t, other.Import(l.Handle()))
		far, err := other.OpenTimeline(l.Handle())
		testutil.NoError(t, err)
		far.Track(1, time.Now()).Turn(arena.Working, 3, time.Now())
		if v := timelines(t, d, 1)[0].Tracks[0]; v.Deaths != 0 || v.Died != 0 {
			t.Errorf("%+v", v)
		}
		k := l.Track(1, time.Now())
		if v := timelines(t, d, 1)[0].Tracks[0]; v.Deaths != 1 || v.Died == 0 || v.State != "idle" {
			t.Errorf("%+v", v)
		}
		k.Turn(arena.Finished, 0, time.Now())
		l.Track(1, time.Now())
		l.End(1, time.Now())
		if v := timelines(t, d, 1)[0].Tracks[0]; v.Deaths != 1 || v.State != "ended" {
			t.Errorf("after two that have ended in order: %+v", v)
		}
		testutil.NoError(t, far.Close())
		testutil.NoError(t, l.Close())
	})
}

// A block without the magic number is refused, and the caller keeps its reference.
func TestOpenTimeline_KeepsNoReferenceOnError(t *testing.T) {
	d := newDomain(t, 8<<20)
	l, err := d.NewTimeline(1, 1)
	testutil.NoError(t, err)
	testutil.NoError(t, l.Retain())
	l.Words().Set(0, 0)
	view, err := d.OpenTimeline(l.Handle())
	testutil.ErrorIs(t, err, arena.ErrCorrupt)
	if view != nil {
		t.Error("OpenTimeline returns a view with its error")
	}
	for range 3 {
		runtime.GC() // would run the cleanup of a view
		time.Sleep(time.Millisecond)
	}
	testutil.NoError(t, d.Release(l.Handle()), l.Close())
}

// TestTimeline_GarbageIsRead writes garbage while it is observed, and while its writers go on.
func TestTimeline_GarbageIsRead(t *testing.T) {
	d := newDomain(t, 8<<20)
	l, err := d.NewTimeline(2, 2)
	testutil.NoError(t, err)
	words := l.Words()
	var g sync.WaitGroup
	stop := make(chan struct{})
	g.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-stop:
				return
			default:
			}
			v := r.Uint64() >> r.IntN(64)
			if r.IntN(2) == 0 {
				v = ^v
			}
			i := r.IntN(len(words))
			if i == 0 && r.IntN(4) > 0 { // most of the time it is a timeline
				v = words.At(0)
			}
			words.Set(i, v)
			if r.IntN(100) == 0 {
				words.Set(0, arena.TimelineForm)
			}
			k := l.Track(r.IntN(3), time.Now())
			k.Turn(arena.Activity(r.IntN(7)), v, time.Now().Add(-time.Duration(r.IntN(int(time.Minute)))))
			k.Turn(arena.Working, v, time.Now())
			l.Passed(arena.Passage{Batch: v, Asked: -1})
		}
	})
	seen := 0
	for range 300 {
		for _, v := range d.Observe().Timelines {
			seen++
			for _, k := range append(v.Tracks, v.Consumer) {
				for _, all := range [][]int64{k.Working, k.Idle, k.Blocked} {
					for _, n := range all {
						if n < 0 || n > v.Step {
							t.Fatalf("a step of %d µs has %d", v.Step, n)
						}
					}
				}
				if k.For < 0 || k.Died < 0 || k.Batch < 0 || k.Epoch < 0 {
					t.Fatalf("%+v", k)
				}
			}
			if len(v.Batches) > 32 || len(v.Tracks) > 2 || v.Workers < 0 || v.Workers > 1<<10 {
				t.Fatalf("%d batches, %d tracks of %d workers", len(v.Batches), len(v.Tracks), v.Workers)
			}
			for _, b := range v.Batches {
				if b.Asked < 0 || b.Taken < 0 || b.Batch < 0 {
					t.Fatalf("%+v", b)
				}
			}
		}
	}
	close(stop)
	g.Wait()
	if seen == 0 {
		t.Error("garbage was never read")
	}
	testutil.NoError(t, l.Close())
}

func BenchmarkTrack(b *testing.B) {
	d, err := arena.New(arena.Options{Budget: 8 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	l, err := d.NewTimeline(1, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	k, at := l.Track(1, time.Now()), time.Now()
	for i := 0; b.Loop(); i++ {
		at = at.Add(time.Microsecond)
		k.Turn(arena.Working+arena.Activity(i&1), uint64(i), at)
	}
}
