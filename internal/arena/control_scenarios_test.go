//go:build shoalcrash

package arena

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/test/testutil"
)

var (
	deeper  = flag.Int("schedule.deeper", 0, "explore the schedules of so many preemptions more")
	randoms = flag.Int("schedule.random", 2000, "random schedules of each scenario")
)

// A scenario is what a few goroutines do at once. With death, participant 0 is killed, before each
// of its writes in turn, and somebody reaps.
type scenario struct {
	name         string
	participants int
	death        bool
	writes       int // of the victim, and its end: learnt
	most         int // preemptions of the schedules of which every one is explored
	// begin adds the actors, and returns what is asked at the end, when nothing goes on: it lets go
	// of all that the living hold and says what is wrong.
	begin func(p *play, all []*Domain) func() []string
}

var scenarios = []scenario{
	{name: "two messages through one slot", most: 2, participants: 2, begin: oneSlot},
	{name: "each takes one after its put", most: 2, participants: 2, begin: takeAfterPut},
	{name: "each puts one after its get", most: 2, participants: 2, begin: putAfterGet},
	{name: "one block in two messages", most: 1, participants: 3, begin: sharedBlock},
	{name: "release, send and receive at once", most: 1, participants: 3, begin: releaseWhileTravelling},
	{name: "the last sender leaves", most: 2, participants: 2, begin: lastSender},
	{name: "two allocate what one frees", most: 1, participants: 3, begin: allocWhileFreed},
	{name: "three want a mutex", most: 2, participants: 3, begin: threeLock},
	{name: "the holder of a mutex dies", most: 2, participants: 2, death: true, begin: holderDies},
	{name: "a sender dies", most: 1, participants: 2, death: true, begin: senderDies},
	{name: "one returns a lease, and another leases", most: 1, participants: 2, begin: leaseReturned},
	{name: "the holder of a lease dies", most: 1, participants: 2, death: true, begin: leaserDies},
	{name: "a receiver dies", most: 1, participants: 2, death: true, begin: receiverDies},
}

// A sharedRing is a ring that several participants have open, with the blocks that they send.
type sharedRing struct {
	p     *play
	all   []*Domain
	rings []*Ring
	ends  [][]Handle // of the ring, by participant
	bad   []string
	got   int
}

// ring opens a ring of so many messages in all participants.
func ringOfAll(p *play, all []*Domain, capacity int) *sharedRing {
	h := &sharedRing{p: p, all: all}
	r, s, v, err := all[0].NewRing(RingOptions{Capacity: capacity})
	testutil.MustNoError(err)
	h.rings, h.ends = []*Ring{r}, [][]Handle{{r.Handle(), s, v}}
	for _, d := range all[1:] {
		for _, x := range h.ends[0] {
			testutil.MustNoError(d.Import(x))
		}
		view, err := d.OpenRing(r.Handle())
		testutil.MustNoError(err)
		h.rings, h.ends = append(h.rings, view), append(h.ends, h.ends[0])
	}
	return h
}

func (h *sharedRing) wrong(format string, args ...any) {
	h.bad = append(h.bad, fmt.Sprintf(format, args...))
}

func (h *sharedRing) try(what string, err error) {
	if err != nil {
		h.wrong("%s: %v", what, err)
	}
}

// put sends the block of one participant and lets go of it.
func (h *sharedRing) put(i int, block Handle) {
	h.try("put", h.rings[i].Put(context.Background(), []byte{byte(block.Block())}, []Handle{block}, true))
}

// keep takes a message, whose block must be the one that its body names, and returns that.
func (h *sharedRing) keep(i int) Handle {
	var m Message
	if err := h.rings[i].Get(context.Background(), &m); err != nil {
		h.wrong("get: %v", err)
		return 0
	}
	h.got++
	if len(m.Blocks) != 1 || m.Body[0] != byte(m.Blocks[0].Block()) {
		h.wrong("message %v carries %v", m.Body, m.Blocks)
		return 0
	}
	return m.Blocks[0]
}

// get takes a message and lets go of its block.
func (h *sharedRing) get(i int) { h.try("release", h.all[i].Release(h.keep(i))) }

// end lets go of the ring and looks for what is left over.
func (h *sharedRing) end(left ...int) func() []string {
	return func() []string {
		for _, i := range left {
			for _, x := range h.ends[i] {
				h.try("let go of the ring", h.all[i].Release(x))
			}
		}
		if n := h.all[left[0]].Stats().Blocks; n != 0 {
			h.wrong("%d blocks are left over", n)
		}
		return h.bad
	}
}

func newBlock(d *Domain) Handle {
	h, err := d.Alloc(layout.PageSize)
	testutil.MustNoError(err)
	return h
}

func oneSlot(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 1)
	a, b := newBlock(all[0]), newBlock(all[0])
	p.add(all[0], "sender", func() { h.put(0, a); h.put(0, b) })
	p.add(all[1], "receiver", func() { h.get(1); h.get(1) })
	return h.end(0, 1)
}

// takeAfterPut has each participant put a value and then take one. None takes more than it has put,
// so a value is there for each of them: also behind a slot that the other one is writing.
func takeAfterPut(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 2)
	for i, r := range h.rings {
		p.add(all[i], fmt.Sprintf("user %d", i), func() {
			h.try("put", r.TryPut([]byte{1}, nil, false))
			if r.Empty() {
				h.wrong("the ring is empty after a put that no get has followed")
			}
			h.try("get", r.TryGet(new(Message)))
		})
	}
	return h.end(0, 1)
}

// putAfterGet has each participant take a value from a full ring and then put one. None puts more
// than it has taken, so there is room for each of them: also where the other one is reading its
// slot.
func putAfterGet(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 2)
	for _, r := range h.rings {
		h.try("fill", r.TryPut([]byte{1}, nil, false))
	}
	for i, r := range h.rings {
		p.add(all[i], fmt.Sprintf("user %d", i), func() {
			h.try("get", r.TryGet(new(Message)))
			h.try("put", r.TryPut([]byte{1}, nil, false))
		})
	}
	return h.end(0, 1)
}

func sharedBlock(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 2)
	b := newBlock(all[0])
	testutil.MustNoError(all[1].Import(b))
	p.add(all[0], "sender 0", func() { h.put(0, b) })
	p.add(all[1], "sender 1", func() { h.put(1, b) })
	p.add(all[2], "receiver", func() { h.get(2); h.get(2) })
	return h.end(0, 1, 2)
}

func releaseWhileTravelling(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 1)
	b := newBlock(all[0])
	testutil.MustNoError(all[1].Import(b))
	p.add(all[0], "releaser", func() { h.try("release", all[0].Release(b)) })
	p.add(all[1], "sender", func() { h.put(1, b) })
	var kept Handle
	p.add(all[2], "receiver", func() { kept = h.keep(2) })
	end := h.end(0, 1, 2)
	return func() []string {
		h.try("release what was received", all[2].Release(kept))
		return end()
	}
}

func lastSender(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 1)
	testutil.MustNoError(all[1].Release(h.ends[1][1]))
	h.ends[1] = []Handle{h.ends[1][0], h.ends[1][2]}
	h.ends[0] = []Handle{h.ends[0][0], h.ends[0][2]}
	senders, b := h.rings[0].Senders(), newBlock(all[0])
	p.add(all[0], "sender", func() {
		h.put(0, b)
		h.try("leave", all[0].Release(senders))
	})
	p.add(all[1], "receiver", func() {
		h.get(1)
		if err := h.rings[1].Get(context.Background(), new(Message)); !errors.Is(err, ErrFinished) {
			h.wrong("a get of nobody's message: %v", err)
		}
	})
	return h.end(0, 1)
}

func allocWhileFreed(p *play, all []*Domain) func() []string {
	h := &sharedRing{p: p, all: all}
	b := newBlock(all[0])
	owners := map[Handle]int{}
	p.add(all[0], "releaser", func() { h.try("release", all[0].Release(b)) })
	for i := 1; i < 3; i++ {
		p.add(all[i], fmt.Sprintf("allocator %d", i), func() {
			n, err := all[i].Alloc(layout.PageSize)
			h.try("alloc", err)
			if j := owners[n]; j != 0 {
				h.wrong("%d and %d have the same block", i, j)
			}
			owners[n] = i
			all[i].mem.Header.Lists[layout.ClassOf(layout.PageSize)].Load() // somebody else may go on here
			h.try("release", all[i].Release(n))
			delete(owners, n)
		})
	}
	return func() []string {
		if n := all[0].Stats().Blocks; n != 0 {
			h.wrong("%d blocks are left over", n)
		}
		return h.bad
	}
}

// mutexes returns the views of one mutex, and lets go of it.
func (h *sharedRing) mutexes() (views []Mutex, end func(left ...int) func() []string) {
	s, err := h.all[0].NewSync(SyncOptions{Form: FormMutex, Bytes: layout.PageSize})
	testutil.MustNoError(err)
	views = []Mutex{{s}}
	for _, d := range h.all[1:] {
		testutil.MustNoError(d.Import(s.Handle()))
		v, err := d.OpenSync(s.Handle(), FormMutex)
		testutil.MustNoError(err)
		views = append(views, Mutex{v})
	}
	for range views {
		h.ends = append(h.ends, []Handle{s.Handle()})
	}
	return views, h.end
}

// locked takes the mutex, is alone for a moment, and gives it back.
func (h *sharedRing) locked(m Mutex, inside *int) {
	err := m.Lock(context.Background())
	if errors.Is(err, ErrOwnerDied) {
		*inside = 0
		h.try("mark consistent", m.MarkConsistent())
	} else {
		h.try("lock", err)
	}
	if *inside++; *inside != 1 {
		h.wrong("%d hold the mutex", *inside)
	}
	if pid := m.Holder(); pid == 0 {
		h.wrong("a mutex that is held has no holder")
	}
	*inside--
	h.try("unlock", m.Unlock())
	h.got++
}

func threeLock(p *play, all []*Domain) func() []string {
	h := &sharedRing{p: p, all: all}
	views, end := h.mutexes()
	inside := 0
	for i, m := range views {
		p.add(all[i], fmt.Sprintf("locker %d", i), func() { h.locked(m, &inside) })
	}
	return end(0, 1, 2)
}

// reaper adds an actor that waits for the victim's death and reaps.
func (h *sharedRing) reaper() {
	h.p.add(h.all[1], "reaper", func() {
		h.p.Block(func() bool { alive, _ := h.p.s.isAlive(0); return !alive })
		_, err := h.all[1].Reap()
		h.try("reap", err)
	})
}

func holderDies(p *play, all []*Domain) func() []string {
	h := &sharedRing{p: p, all: all}
	views, end := h.mutexes()
	inside := 0
	p.add(all[0], "victim", func() { h.locked(views[0], &inside) })
	p.add(all[1], "heir", func() { h.locked(views[1], &inside) })
	h.reaper()
	return end(1)
}

func senderDies(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 1)
	testutil.MustNoError(all[1].Release(h.ends[1][1]))
	h.ends[1] = []Handle{h.ends[1][0], h.ends[1][2]}
	b := newBlock(all[0])
	p.add(all[0], "victim", func() { h.put(0, b) })
	p.add(all[1], "receiver", func() {
		for {
			var m Message
			err := h.rings[1].Get(context.Background(), &m)
			if errors.Is(err, ErrFinished) {
				return
			}
			h.try("get", err)
			h.got++
			m.Discard()
		}
	})
	h.reaper()
	return h.end(1)
}

func receiverDies(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 1)
	testutil.MustNoError(all[1].Release(h.ends[1][2]))
	h.ends[1] = h.ends[1][:2]
	b := newBlock(all[1])
	p.add(all[0], "victim", func() { h.get(0) })
	p.add(all[1], "sender", func() {
		err := h.rings[1].Put(context.Background(), []byte{byte(b.Block())}, []Handle{b}, true)
		if errors.Is(err, ErrFinished) {
			h.try("take back", all[1].Release(b))
		} else {
			h.try("put", err)
		}
	})
	h.reaper()
	end := h.end(1)
	return func() []string {
		if dropped := all[1].Stats().Dropped; h.got+dropped > 1 {
			h.wrong("%d messages received and %d dropped, of one", h.got, dropped)
		}
		return end()
	}
}

// lease takes a message by a lease, whose block must be the one that its body names.
func (h *sharedRing) lease(i int) Claim {
	var m Message
	c, err := h.rings[i].Lease(context.Background(), &m)
	h.try("lease", err)
	if err == nil && (len(m.Blocks) != 1 || m.Body[0] != byte(m.Blocks[0].Block())) {
		h.wrong("message %v carries %v", m.Body, m.Blocks)
	}
	m.Discard()
	return c
}

// leaseReturned has one participant return a lease while the other one takes all messages.
func leaseReturned(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 2)
	for range 2 {
		h.put(0, newBlock(all[0]))
	}
	h.rings[0].Finish()
	first := h.lease(0)
	p.add(all[0], "returner", func() { h.try("return", h.rings[0].Return(first)) })
	p.add(all[1], "leaser", func() {
		for range 2 {
			h.try("acknowledge", h.rings[1].Acknowledge(h.lease(1)))
		}
		if err := h.rings[1].Get(context.Background(), new(Message)); !errors.Is(err, ErrFinished) {
			h.wrong("after the last lease: %v", err)
		}
	})
	return h.end(0, 1)
}

// leaserDies has one participant die with a lease, before it, or in its acknowledgement. The other
// one takes what is there until the end.
func leaserDies(p *play, all []*Domain) func() []string {
	h := ringOfAll(p, all, 1)
	h.put(1, newBlock(all[1]))
	h.rings[1].Finish()
	acknowledging := false
	p.add(all[0], "victim", func() {
		var m Message
		c, err := h.rings[0].Lease(context.Background(), &m)
		if errors.Is(err, ErrFinished) {
			return // the heir was first
		}
		h.try("lease", err)
		m.Discard()
		acknowledging = true
		h.try("acknowledge", h.rings[0].Acknowledge(c))
	})
	p.add(all[1], "heir", func() {
		var m Message
		for h.rings[1].Get(context.Background(), &m) == nil {
			h.got++
			m.Discard()
		}
	})
	h.reaper()
	end := h.end(1)
	return func() []string {
		if h.got > 1 || h.got == 0 && !acknowledging {
			h.wrong("the message came %d times", h.got)
		}
		return end()
	}
}

func TestSchedules_LeaveNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine runs at a time, and hands on quickly
	s, total, began := newStage(), 0, time.Now()
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			x := &explorer{stage: s, scenario: c, most: c.most + *deeper}
			begin := time.Now()
			for _, step := range []func() *finding{
				func() *finding { return x.learn(1, 400) },
				x.all,
				func() *finding { return x.sample(2, *randoms) },
			} {
				if found := step(); found != nil {
					t.Fatalf("after %d schedules:\n%v", x.explored, found)
				}
			}
			total += x.explored
			t.Logf("%d interleavings: every one of at most %d preemptions, and %d random ones; %.1f s",
				x.explored, x.most,
				*randoms, time.Since(begin).Seconds())
		})
	}
	t.Logf("%d interleavings of the real code in %.1f s", total, time.Since(began).Seconds())
}

// A step that is left out must be missed by one of the schedules: otherwise the exploration would
// say nothing about the steps that are there.
func TestSchedules_MissWhatIsLeftOut(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer word.DisableBranch("")
	s := newStage()
	for _, c := range []struct{ branch, scenario string }{
		{"second look", "two messages through one slot"},
		{"unfinished put", "each takes one after its put"},
		{"unfinished get", "each puts one after its get"},
		{"owners under the stamp", "release, send and receive at once"},
		{"mark and look in one", "one block in two messages"},
		{"unlock wakes", "three want a mutex"},
		{"writing", "a sender dies"},
		{"put undone", "a sender dies"},
		{"reader", "a receiver dies"},
		{"owner bits", "a receiver dies"},
		{"leased", "the holder of a lease dies"},
		{"count return", "one returns a lease, and another leases"},
		{"ring all", "the holder of a mutex dies"},
	} {
		t.Run(c.branch, func(t *testing.T) {
			word.DisableBranch(c.branch)
			x := &explorer{stage: s, scenario: scenarioOf(c.scenario), most: 2, limit: 200_000}
			found := x.learn(1, 400)
			if found == nil {
				found = x.sample(2, 20_000)
			}
			if found == nil {
				found = x.all()
			}
			if found == nil {
				t.Fatalf("%d interleavings of %q miss nothing", x.explored, c.scenario)
			}
			t.Logf("missed after %d interleavings: %s", x.explored, found.wrong[0])
		})
	}
}

func scenarioOf(name string) scenario {
	for _, c := range scenarios {
		if c.name == name {
			return c
		}
	}
	panic("no scenario " + name)
}
