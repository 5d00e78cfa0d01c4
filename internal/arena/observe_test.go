package arena_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestObserve_CountsBlocks(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d, other := f.first, f.join()
		before := d.Observe()
		h := alloc(t, d, 1<<20, "large")
		small := alloc(t, d, 100, "small")
		testutil.NoError(t, other.Import(h))
		r, senders, _ := newRing(t, d, 4)
		_ = senders
		testutil.NoError(t, r.Put(testutil.Context(t), nil, []arena.Handle{small}, true))
		testutil.NoError(t, d.Bind(testutil.Context(t), "weights", nil, []arena.Handle{h}))
		o := d.Observe()
		if o.Stats != d.Stats() || o.PID != os.Getpid() || !slices.Equal(o.Names, []string{"weights"}) {
			t.Errorf("the report %+v, want %+v", o.Report, d.Report())
		}
		if got, want := o.Holders, d.Report().Holders; !slices.Equal(got, want) {
			t.Errorf("holders %+v, want %+v", got, want)
		}
		if len(o.Participants) != 2 || o.Participants[1].State != "live" {
			t.Errorf("participants %+v", o.Participants)
		}
		s := o.Summary
		all := s.States.Held.Blocks + s.States.InTransit.Blocks + s.States.Ending.Blocks
		inTransit := before.Summary.States.InTransit.Blocks + 2 // the board as well
		if all != o.Stats.Blocks || s.States.InTransit.Blocks != inTransit {
			t.Errorf("states %+v of %d blocks", s.States, o.Stats.Blocks)
		}
		kinds, sizes := 0, 0
		for _, c := range s.Kinds {
			kinds += c.Blocks
		}
		for _, c := range s.Sizes {
			sizes += c.Blocks
		}
		if kinds != all || sizes != all || s.Ages.Unknown.Blocks != all {
			t.Errorf("%d blocks by kind, %d by size, %d of unknown age, want %d", kinds, sizes,
				s.Ages.Unknown.Blocks, all)
		}
		v := s.Largest[slices.IndexFunc(s.Largest, func(v observe.BlockView) bool { return v.Block == h.String() })]
		if v.Bytes != 1<<20 || len(v.PIDs) != 2 || v.InTransit != 1 || !slices.Equal(v.Names, []string{"weights"}) ||
			v.Kind != "block" || v.AgeKnown {
			t.Errorf("the large block: %+v", v)
		}
		if b := o.Bound["weights"]; !slices.Equal(b.Blocks, []string{h.String()}) {
			t.Errorf("bound: %+v", o.Bound)
		}
		mine := s.Holders[slices.IndexFunc(s.Holders, func(c observe.HolderCount) bool { return c.Seat == 0 })]
		if mine.Bytes-mine.Alone.Bytes < 1<<20 || mine.Alone.Blocks == 0 {
			t.Errorf("the first participant shares the large block: %+v", mine)
		}
	})
}

func TestObserve_AgesAreOfWhatWasSeen(t *testing.T) {
	d := newDomain(t, 8<<20)
	alloc(t, d, 100, "old")
	w := arena.NewWatching(d)
	ages := func() observe.Ages { return w.Look().Summary.Ages }
	if a := ages(); a.Unknown.Blocks != 1 || a.Second.Blocks != 0 {
		t.Errorf("at first: %+v", a)
	}
	h := alloc(t, d, 100, "new")
	if a := ages(); a.Unknown.Blocks != 1 || a.Second.Blocks != 1 {
		t.Errorf("then: %+v", a)
	}
	w.Pass(10 * time.Second)
	if a := ages(); a.Unknown.Blocks != 1 || a.Minute.Blocks != 1 {
		t.Errorf("ten seconds later: %+v", a)
	}
	w.Pass(time.Minute)
	if a := ages(); a.Older.Blocks != 2 {
		t.Errorf("a minute later: %+v", a)
	}
	testutil.NoError(t, d.Release(h))
	if h2 := alloc(t, d, 100, "again"); h2.Block() != h.Block() {
		t.Fatalf("%v is not %v used again", h2, h)
	}
	if a := ages(); a.Older.Blocks != 1 || a.Second.Blocks != 1 {
		t.Errorf("the block of an index that is used again: %+v", a)
	}
	w.Pass(time.Hour)
	alloc(t, d, 100, "in between")
	if a := ages(); a.Unknown.Blocks != 1 || a.Older.Blocks != 2 {
		t.Errorf("after an hour without a look: %+v", a)
	}
}

func TestObserve_QueuesTellEndsAndWaiters(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d, other := f.first, f.join()
		r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 3, Label: "int"})
		testutil.NoError(t, err)
		testutil.NoError(t, d.Bind(testutil.Context(t), "jobs", nil, []arena.Handle{r.Handle(), senders, receivers}))
		far := open(t, other, r.Handle(), senders, receivers)
		testutil.NoError(t, d.Release(receivers)) // but the other one has it, and the name
		only := func(o observe.Observation) observe.QueueView {
			if len(o.Queues) != 1 || o.QueuesLeft != 0 {
				t.Fatalf("%d queues: %+v", len(o.Queues), o.Queues)
			}
			return o.Queues[0]
		}
		q := only(d.Observe())
		if q.Label != "int" || q.Capacity != 3 || q.Depth != 0 || !slices.Equal(q.Names, []string{"jobs"}) ||
			len(q.Senders.PIDs) != 2 || len(q.Receivers.PIDs) != 1 || q.Receivers.InTransit != 1 || q.Latest ||
			q.Finished {
			t.Errorf("at first: %+v", q)
		}
		ctx, cancel := context.WithCancel(testutil.Context(t))
		got := async(func() error { return far.Get(ctx, new(arena.Message)) })
		testutil.Eventually(t, func() bool { return len(only(d.Observe()).Receivers.Waiting) == 1 },
			"nobody waits for a message")
		testutil.NoError(t, r.Put(ctx, []byte("1"), nil, false))
		testutil.NoError(t, <-got)
		for range 3 {
			testutil.NoError(t, r.Put(ctx, []byte("2"), nil, false))
		}
		put := async(func() error { return r.Put(ctx, []byte("3"), nil, false) })
		testutil.Eventually(t, func() bool { return len(only(d.Observe()).Senders.Waiting) == 1 },
			"nobody waits for room")
		if q := only(d.Observe()); q.Depth != 3 || q.Puts != 4 || q.Gets != 1 {
			t.Errorf("full: %+v", q)
		}
		cancel()
		<-put
		r.Finish()
		testutil.NoError(t, d.Unlink("jobs"))
		testutil.NoError(t, other.Release(receivers))
		if q := only(d.Observe()); !q.Finished || !q.Receivers.Gone || q.Senders.Gone || len(q.Names) != 0 {
			t.Errorf("at the end: %+v", q)
		}
	})
}

func TestObserve_LocksTellOwnersAndWaiters(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d, other := f.first, f.join()
		ctx, cancel := context.WithCancel(testutil.Context(t))
		defer cancel()
		me := os.Getpid()
		seen := func(h arena.Handle) observe.LockView {
			for _, l := range d.Observe().Locks {
				if l.Block == h.String() {
					return l
				}
			}
			t.Fatalf("no lock in %v", h)
			return observe.LockView{}
		}
		waits := func(what string, h arena.Handle) {
			testutil.Eventually(t, func() bool { return slices.Equal(seen(h).Waiting, []int{me}) },
				"nobody waits: %s", what)
		}
		var waiters []<-chan error

		m := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, d, other)
		if l := seen(m[0].Handle()); l.Owner != 0 || l.Kind != "mutex" || len(l.PIDs) != 2 {
			t.Errorf("a free mutex: %+v", l)
		}
		testutil.NoError(t, arena.Mutex{Sync: m[0]}.Lock(ctx))
		waiters = append(waiters, async(func() error { return arena.Mutex{Sync: m[1]}.Lock(ctx) }))
		waits("mutex", m[0].Handle())
		if l := seen(m[0].Handle()); l.Owner != me || l.Dead {
			t.Errorf("a mutex: %+v", l)
		}

		rw := newSync(t, arena.SyncOptions{Form: arena.FormRWMutex}, d, other)
		testutil.NoError(t, arena.RWMutex{Sync: rw[0]}.RLock(ctx))
		waiters = append(waiters, async(func() error { return arena.RWMutex{Sync: rw[1]}.Lock(ctx) }))
		testutil.Eventually(t, func() bool {
			l := seen(rw[0].Handle())
			return slices.Equal(l.Drained, []int{me}) && l.Owner == me &&
				slices.Equal(l.Shares, []observe.Share{{PID: me, Count: 1}})
		}, "no writer waits")

		s := newSync(t, arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1}, d, other)
		testutil.NoError(t, arena.Semaphore{Sync: s[0]}.Acquire(ctx))
		waiters = append(waiters, async(func() error { return arena.Semaphore{Sync: s[1]}.Acquire(ctx) }))
		waits("semaphore", s[0].Handle())
		if l := seen(s[0].Handle()); l.Permits != 0 || l.Limit != 1 || len(l.Shares) != 1 || l.Shares[0].Count != 1 {
			t.Errorf("a semaphore: %+v", l)
		}

		e := newSync(t, arena.SyncOptions{Form: arena.FormEvent}, d, other)
		waiters = append(waiters, async(func() error { return arena.Event{Sync: e[1]}.Wait(ctx) }))
		waits("event", e[0].Handle())

		b := newSync(t, arena.SyncOptions{Form: arena.FormBarrier, Limit: 2}, d, other)
		waiters = append(waiters, async(func() error {
			_, err := arena.Barrier{Sync: b[1]}.Wait(ctx, nil)
			return err
		}))
		waits("barrier", b[0].Handle())
		if l := seen(b[0].Handle()); l.Arrived != 1 || l.Limit != 2 || len(l.Shares) != 2 || l.Broken {
			t.Errorf("a barrier: %+v", l)
		}

		c := newSync(t, arena.SyncOptions{Form: arena.FormCond}, d, other)
		m2 := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, d, other)
		waiters = append(waiters, async(func() error {
			if err := (arena.Mutex{Sync: m2[1]}).Lock(ctx); err != nil {
				return err
			}
			_, err := arena.Cond{Sync: c[1]}.Wait(ctx, arena.Mutex{Sync: m2[1]})
			return err
		}))
		waits("cond", c[0].Handle())

		died(t, other, d)
		for what, l := range map[string]observe.LockView{"mutex": seen(m[0].Handle()), "barrier": seen(b[0].Handle())} {
			dead := slices.ContainsFunc(l.Shares, func(s observe.Share) bool { return s.Dead })
			if what == "barrier" && (len(l.Waiting) != 0 || !dead) {
				t.Errorf("the %s of a dead member: %+v", what, l)
			}
			if len(l.PIDs) != 1 {
				t.Errorf("the %s is held by %v after a death", what, l.PIDs)
			}
		}
		cancel()
		for _, w := range waiters {
			select {
			case <-w:
			case <-time.After(30 * time.Second):
				t.Fatal("a waiter goes on")
			}
		}
	})
}

func TestObserve_SizeDoesNotGrowWithTheDomain(t *testing.T) {
	d := newDomain(t, 64<<20)
	for range 200 {
		newRing(t, d, 1)
		newSync(t, arena.SyncOptions{Form: arena.FormMutex}, d)
		alloc(t, d, 5000, "x")
	}
	last := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, d)[0]
	testutil.NoError(t, arena.Mutex{Sync: last}.Lock(testutil.Context(t)))
	o := d.Observe()
	if len(o.Queues) != 128 || o.QueuesLeft != 72 || len(o.Locks) != 128 || o.LocksLeft != 73 ||
		len(o.Summary.Largest) != 32 {
		t.Errorf("%d queues and %d, %d locks and %d, %d blocks", len(o.Queues), o.QueuesLeft, len(o.Locks), o.LocksLeft,
			len(o.Summary.Largest))
	}
	if o.Locks[0].Block != last.Handle().String() {
		t.Errorf("the lock that is held is not the first one: %+v", o.Locks[0])
	}
}

func TestObserve_ChangesNothing(t *testing.T) {
	d := newDomain(t, 8<<20)
	alloc(t, d, 1<<20, "x")
	r, _, _ := newRing(t, d, 4)
	testutil.NoError(t, r.Put(testutil.Context(t), []byte("1"), nil, false))
	testutil.NoError(t, d.Bind(testutil.Context(t), "a", nil, nil))
	before := d.Words()
	d.Observe()
	if after := d.Words(); !slices.Equal(before, after) {
		t.Error("words of the control segment have changed")
	}
}

func TestObserve_AsksOthers(t *testing.T) {
	d := newDomain(t, 8<<20)
	alloc(t, d, 1<<20, "x")
	s, err := d.Serve()
	testutil.NoError(t, err)
	o, err := arena.Observe(testutil.Context(t), s.Addr())
	testutil.NoError(t, err)
	if o.Version != arena.ProtocolVersion || o.Summary.States.Held.Bytes != 1<<20 || o.Stats.Blocks != 1 {
		t.Errorf("observation: %+v", o)
	}
	testutil.NoError(t, d.Close())
	if _, err := arena.Observe(testutil.Context(t), s.Addr()); err == nil {
		t.Error("a closed domain answers")
	}
}

// TestObserve_OlderProgramsAreInspected has a program that answers inspection alone, as those do
// that were built before there were observations.
func TestObserve_OlderProgramsAreInspected(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	testutil.NoError(t, err)
	defer l.Close()
	served := async(func() error {
		for range 2 {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			req := make([]byte, 32)
			if _, err := io.ReadFull(c, req); err != nil {
				return err
			}
			if req[5] == 'I' {
				err = json.NewEncoder(c).Encode(arena.Report{PID: 7, Names: []string{"old"}})
			}
			if err := errors.Join(err, c.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	o, err := arena.Observe(testutil.Context(t), l.Addr().String())
	testutil.NoError(t, err)
	if o.PID != 7 || o.Version != 0 || fmt.Sprint(o.Names) != "[old]" || o.Queues != nil {
		t.Errorf("observation: %+v", o)
	}
	testutil.NoError(t, <-served)
}

func TestObserve_TheNewestOfALatestThatIsShort(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 4, Label: "Latest[float64]", News: true})
		testutil.NoError(t, err)
		news := func() string { return string(d.Observe().Queues[0].News) }
		if n := news(); n != "" {
			t.Errorf("before the first one: %q", n)
		}
		put := func(body string, blocks ...arena.Handle) {
			t.Helper()
			testutil.NoError(t, r.Put(testutil.Context(t), []byte(body), blocks, false))
			r.DropOld()
		}
		put("first")
		put("newest")
		if n := news(); n != "newest" {
			t.Errorf("%q", n)
		}
		put(strings.Repeat("long", 100))
		if n := news(); n != "" {
			t.Errorf("a long one: %q", n)
		}
		h := alloc(t, d, 100, "block")
		put("with a block", h)
		if n := news(); n != "" {
			t.Errorf("one with a block: %q", n)
		}
		put("end")
		testutil.NoError(t, d.Release(h))
		testutil.NoError(t, d.Release(r.Handle()))
		testutil.NoError(t, d.Release(senders))
		testutil.NoError(t, d.Release(receivers))
	})
}
