package arena_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestBudget_ExhaustionIsAnErrorWithNumbers(t *testing.T) {
	everyWorld(t, 4<<20, func(t *testing.T, f *family) {
		d := f.first
		var all []arena.Handle
		for range 4 {
			all = append(all, alloc(t, d, 1<<20, "x"))
		}
		_, err := d.Alloc(1 << 20)
		var full *arena.SpaceError
		if !errors.As(err, &full) || !errors.Is(err, arena.ErrNoSpace) {
			t.Fatalf("alloc: %v, want a *SpaceError", err)
		}
		if full.Want != 1<<20 || full.Used != 4<<20 || full.Limit != 4<<20 || full.Free != 0 {
			t.Errorf("the error says %+v", *full)
		}
		if len(full.Holders) != 1 || full.Holders[0].Bytes != 4<<20 || full.Holders[0].Seat != d.Seat() {
			t.Errorf("holders: %+v", full.Holders)
		}
		wantMark(t, d, all[3], "x")
		testutil.NoError(t, d.Release(all[0]))
		alloc(t, d, 1<<20, "y")
		wantRest(t, d, 4)
	})
}

// What was put and not received is counted apart: nobody but a message holds it.
func TestRegression_S2_5_ABudgetErrorSaysWhatNobodyHasReceived(t *testing.T) {
	everyWorld(t, 4<<20, func(t *testing.T, f *family) {
		d := f.first
		r, senders, receivers := newRing(t, d, 8)
		for range 2 {
			h := alloc(t, d, 1<<20, "x")
			testutil.NoError(t, r.TryPut(nil, []arena.Handle{h}, false))
			testutil.NoError(t, d.Release(h))
		}
		kept := alloc(t, d, 1<<20, "y")
		_, err := d.Alloc(2 << 20)
		var full *arena.SpaceError
		if !errors.As(err, &full) || full.Unread != 2<<20 || len(full.Holders) != 1 ||
			full.Holders[0].Bytes < 1<<20 || full.Holders[0].Bytes >= 2<<20 {
			t.Errorf("the error says %+v: want 2 MiB unread, and the rest held here", full)
		}
		if err != nil && !strings.Contains(err.Error(), "2097152 in unread messages") {
			t.Error(err)
		}
		var m arena.Message
		for range 2 {
			testutil.NoError(t, r.TryGet(&m))
			for _, h := range m.Blocks {
				testutil.NoError(t, d.Release(h))
			}
		}
		for _, h := range []arena.Handle{kept, senders, receivers, r.Handle()} {
			testutil.NoError(t, d.Release(h))
		}
	})
}

// The queues are told apart, by the names that they have and by what they carry; which messages are
// spilled makes no difference.
func TestRegression_S2_5_ABudgetErrorSaysInWhichQueuesItWaits(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		var held []arena.Handle
		ring := func(label string, n int, body []byte) *arena.Ring {
			r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 8, Label: label})
			testutil.NoError(t, err)
			held = append(held, senders, receivers, r.Handle())
			for range n {
				h := alloc(t, d, 1<<20, "x")
				testutil.NoError(t, r.TryPut(body, []arena.Handle{h}, false))
				testutil.NoError(t, d.Release(h))
			}
			return r
		}
		few := ring("", 1, nil)
		jobs := ring("*tensor.Tensor", 3, nil)
		spilled := ring(strings.Repeat("long", 30), 2, make([]byte, 1000))
		ring("nothing waits", 0, nil)
		testutil.NoError(t, d.Bind(context.Background(), "jobs", []byte{1}, []arena.Handle{jobs.Handle()}))
		_, err := d.Alloc(4 << 20)
		var full *arena.SpaceError
		if !errors.As(err, &full) || len(full.Queues) != 3 {
			t.Fatalf("%+v", full)
		}
		if q := full.Queues[0]; q != (arena.Unread{Queue: jobs.Handle().String(), Name: "jobs", Label: "*tensor.Tensor",
			Messages: 3, Bytes: 3 << 20}) {
			t.Errorf("%+v", q)
		}
		if q := full.Queues[1]; q.Queue != spilled.Handle().String() || q.Messages != 2 || q.Bytes <= 2<<20 ||
			q.Label != strings.Repeat("long", 18) {
			t.Errorf("%+v", q)
		}
		if q := full.Queues[2]; q != (arena.Unread{Queue: few.Handle().String(), Messages: 1, Bytes: 1 << 20}) {
			t.Errorf("%+v", q)
		}
		if want := `; 3145728 bytes by 3 unread in queue "jobs" of *tensor.Tensor; 2`; !strings.Contains(
			err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		testutil.NoError(t, d.Unlink("jobs"))
		for _, h := range held {
			testutil.NoError(t, d.Release(h))
		}
	})
}

func TestBudget_RefusalSpendsNoAddresses(t *testing.T) {
	d := newDomain(t, 1<<20) // 16 MiB of addresses
	for range 10 {
		if _, err := d.Alloc(8 << 20); !errors.Is(err, arena.ErrNoSpace) {
			t.Fatalf("alloc: %v, want ErrNoSpace", err)
		}
	}
	if off, _ := d.Extent(alloc(t, d, 1<<20, "x")); off >= 1<<20 {
		t.Errorf("the first block lies at %#x", off)
	}
}

// Where addresses are used up and the budget is not, nobody is told to raise the budget.
func TestBudget_OfAddressesIsTold(t *testing.T) {
	d := newDomain(t, 1<<20) // 16 MiB of addresses
	grown := arena.RingOptions{Capacity: 8 << 20 / arena.SlotSize, Grow: true}
	_, _, _, err := d.NewRing(grown)
	testutil.NoError(t, err)
	_, _, _, err = d.NewRing(grown)
	var full *arena.SpaceError
	if !errors.As(err, &full) || !strings.Contains(err.Error(), " of 16777216 bytes of address space are free: ") ||
		strings.Contains(err.Error(), "Budget") {
		t.Errorf("got %v", err)
	}
}

func TestBudget_MachineWithoutMemoryRefusesBigBlocks(t *testing.T) {
	h, d, err := arena.NewHeap(16 << 20)
	testutil.NoError(t, err)
	defer d.Close()
	idle := alloc(t, d, 4<<20, "x")
	testutil.NoError(t, d.Release(idle))
	h.SetRoom(1 << 20)
	_, err = d.Alloc(6 << 20)
	var full *arena.SpaceError
	if !errors.As(err, &full) || full.Free != 1<<20 {
		t.Fatalf("alloc: %v, want a *SpaceError with 1 MiB free", err)
	}
	if !strings.Contains(full.Machine, "the machine has") || strings.Contains(err.Error(), "raise Budget") {
		t.Errorf("%v: it is not said that the machine has too little, and the budget enough", err)
	}
	if n, err := d.Backed(); err != nil || n != 0 {
		t.Errorf("%d idle bytes were not given back, %v", n, err)
	}
	wantRest(t, d, 0)
}

func TestBudget_LoopNeverExceedsIt(t *testing.T) {
	d := newDomain(t, 1<<20)
	for i := range 100_000 {
		h, err := d.Alloc(4096 * (1 + i%64))
		if err != nil {
			t.Fatalf("allocation %d: %v", i, err)
		}
		testutil.NoError(t, d.Release(h))
	}
	if s := d.Stats(); s.Committed > s.Limit {
		t.Errorf("%d bytes committed, budget %d", s.Committed, s.Limit)
	}
	wantRest(t, d, 0)
}

func TestBudget_IdlePagesAreGivenBackForAnotherClass(t *testing.T) {
	everyWorld(t, 4<<20, func(t *testing.T, f *family) {
		d := f.first
		for _, size := range []int{4 << 20, 1 << 20, 256 << 10, 64, 3 << 20} {
			h := alloc(t, d, size, "x")
			testutil.NoError(t, d.Release(h))
		}
		idle := alloc(t, d, 2<<20, "x")
		testutil.NoError(t, d.Release(idle))
		wantRest(t, d, 0)
		if _, err := d.Alloc(4<<20 - arena.SlabSize); err != nil {
			t.Error(err) // all but the slab of the small block
		}
	})
}

// The last bytes of a budget are of use to a small block, which takes a slab.
func TestBudget_SmallBlockTakesIdlePagesOfABigOne(t *testing.T) {
	d := newDomain(t, 1<<20)
	big := alloc(t, d, 1<<20, "x")
	testutil.NoError(t, d.Release(big))
	alloc(t, d, 64, "x")
	wantRest(t, d, 1)
}

func TestBudget_ParticipantsTogetherNeverExceedIt(t *testing.T) {
	everyWorld(t, 4<<20, func(t *testing.T, f *family) {
		var g sync.WaitGroup
		var got, refused atomic.Int64
		for range 4 {
			d := f.join()
			g.Go(func() {
				for range 20 {
					switch h, err := d.Alloc(512 << 10); {
					case err == nil:
						got.Add(1)
						if s := d.Stats(); s.Committed > s.Limit {
							t.Errorf("%d bytes committed, budget %d", s.Committed, s.Limit)
						}
						if refused.Load() == 0 && got.Load() < 8 {
							continue // kept, until the budget is used up
						}
						if err := d.Release(h); err != nil {
							t.Error(err)
						}
					case errors.Is(err, arena.ErrNoSpace):
						refused.Add(1)
						return
					default:
						t.Error(err)
					}
				}
			})
		}
		g.Wait()
		if err := f.first.Audit(); err != nil {
			t.Error(err)
		}
	})
}

func TestAllocWait_WakesWhenAnotherReleases(t *testing.T) {
	everyWorld(t, 1<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		ctx := testutil.Context(t)
		for range 5 {
			h := alloc(t, a, 1<<20, "x")
			got := make(chan error)
			go func() {
				h, err := b.AllocWait(ctx, 1<<20)
				got <- errors.Join(err, b.Release(h))
			}()
			testutil.NoError(t, a.Release(h))
			testutil.NoError(t, <-got)
		}
		wantRest(t, a, 0)
	})
}

func TestAllocWait_EndsWithItsContext(t *testing.T) {
	d := newDomain(t, 1<<20)
	alloc(t, d, 1<<20, "x")
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { _, err := d.AllocWait(ctx, 4096); got <- err }()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) || !errors.Is(err, arena.ErrNoSpace) {
		t.Errorf("alloc: %v, want both reasons", err)
	}
	if _, err := d.AllocWait(t.Context(), 2<<20); !errors.Is(err, arena.ErrNoSpace) {
		t.Errorf("alloc of more than the budget: %v, want ErrNoSpace at once", err)
	}
}

func TestAllocWait_EndsWithItsDomain(t *testing.T) {
	d := newDomain(t, 1<<20)
	alloc(t, d, 1<<20, "x")
	ctx := testutil.Context(t)
	got := make(chan error)
	go func() { _, err := d.AllocWait(ctx, 4096); got <- err }()
	testutil.NoError(t, d.Close())
	if err := <-got; !errors.Is(err, arena.ErrClosed) {
		t.Errorf("alloc: %v, want ErrClosed", err)
	}
}

// A holder is what a tensor is: a small Go object whose block goes when the collector finds it.
type holder struct{ first *byte }

func newHolder(d *arena.Domain, size int) (*holder, error) {
	h, err := d.Alloc(size)
	if err != nil {
		return nil, err
	}
	p, err := d.Bytes(h)
	if err != nil {
		return nil, err
	}
	o := &holder{&p[0]}
	runtime.AddCleanup(o, func(h arena.Handle) { d.Release(h) }, h)
	return o, nil
}

// forget makes n holders of 1 MiB and closes none.
func forget(d *arena.Domain, n int) error {
	for range n {
		o, err := newHolder(d, 1<<20)
		if err != nil {
			return err
		}
		*o.first = 1
	}
	return nil
}

func TestPressure_CollectsForgottenBlocks(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	testutil.NoError(t, forget(newDomain(t, 64<<20), n))
}

// Long before memory is short: fresh pages cost more than a collection now and then. An allocation
// does not wait long for one, but here each is waited for, however slow the machine is.
func TestAlloc_CollectsForgottenBlocksBeforeItCommitsMore(t *testing.T) {
	d := newDomain(t, 1<<30)
	for range 500 {
		testutil.NoError(t, forget(d, 1))
		d.AwaitCollection()
	}
	if got := d.Stats().Committed; got > 200<<20 {
		t.Errorf("%d MiB are committed for 500 blocks of 1 MiB that were all forgotten", got>>20)
	}
}

func TestPressure_CollectsWhatGoroutinesForget(t *testing.T) {
	d := newDomain(t, 64<<20)
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			if err := forget(d, 300); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
}

func init() {
	actors["forget"] = func(d *arena.Domain, _ []string) error {
		if err := forget(d, 1000); err != nil {
			return err
		}
		say("done")
		untilKilled()
		return d.Close()
	}
}

func TestPressure_CollectsWhatTwoProcessesForget(t *testing.T) {
	d := newDomain(t, 64<<20)
	other := start(t, d, "forget")
	testutil.NoError(t, forget(d, 1000))
	if s := other.hear(); s != "done" {
		t.Fatal(s)
	}
	other.finish()
}

// Pages that come back to the budget wake who waits for memory, also where no block becomes free by
// it.
func TestAllocWait_HearsOfPunchedPages(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		idle := alloc(t, b, 6<<20, "")
		testutil.NoError(t, b.Release(idle))
		end := b.StampPunch(idle)
		got := make(chan error, 1)
		go func() {
			h, err := a.AllocWait(testutil.Context(t), 4<<20)
			got <- errors.Join(err, a.Release(h))
		}()
		testutil.Eventually(t, a.ParkedForMemory, "nobody waits for memory")
		end()
		testutil.NoError(t, <-got)
	})
}
