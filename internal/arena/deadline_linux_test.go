package arena_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() { actors["halted"] = actHalted }

// deadlineOf is the deadline of the calls that meet a process that is stopped, and deadlineSlack is
// how long after it all have returned. Before calls kept their deadlines they never did.
const (
	deadlineOf    = 300 * time.Millisecond
	deadlineSlack = 15 * time.Second
)

// actHalted goes up to a point in the middle of an operation, and stays there until it is killed.
func actHalted(d *arena.Domain, args []string) error {
	r, err := openAs(d, args[1], args[2], args[3])
	if err != nil {
		return err
	}
	h := handleArg(args[4])
	if err := d.Import(h); err != nil {
		return err
	}
	if err := d.Import(handleArg(args[5])); err != nil {
		return err
	}
	sem, err := d.OpenSync(handleArg(args[5]), arena.FormSemaphore)
	if err != nil {
		return err
	}
	if args[0] == lockedCell {
		err = sem.LockCell()
	}
	for _, halt := range arena.Halts {
		if halt.Name == args[0] {
			err = halt.Do(d, r, h)
		}
	}
	if err != nil {
		return err
	}
	say("ready")
	untilKilled()
	return nil
}

const lockedCell = "semaphore changing"

// A deadlined is what the calls of a survivor go to.
type deadlined struct {
	d           *arena.Domain
	ring, other *arena.Ring
	held        []arena.Handle
	h           arena.Handle
	sem         arena.Semaphore
	mu          sync.Mutex
	put         []byte // bodies of messages
	got         []byte
	dropped     int
}

func newDeadlined(t *testing.T) *deadlined {
	x := &deadlined{d: newDomain(t, 64<<20)}
	ring := func(n int) *arena.Ring {
		r, a, b := newRing(t, x.d, n)
		x.held = append(x.held, r.Handle(), a, b)
		return r
	}
	x.ring, x.other = ring(16), ring(2)
	x.h = alloc(t, x.d, 64, "x")
	x.held = append(x.held, x.h)
	for i := range byte(4) {
		testutil.NoError(t, x.ring.TryPut([]byte{1 + i}, []arena.Handle{x.h}, false))
		x.put = append(x.put, 1+i)
	}
	testutil.NoError(t, x.d.Bind(t.Context(), "bound", nil, []arena.Handle{x.h}))
	s, err := x.d.NewSync(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 3})
	testutil.NoError(t, err)
	x.sem = arena.Semaphore{Sync: s}
	x.held = append(x.held, s.Handle())
	testutil.NoError(t, x.sem.Acquire(t.Context()))
	return x
}

func (x *deadlined) take(m *arena.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(m.Body) > 0 {
		x.got = append(x.got, m.Body[0])
	}
	m.Discard()
}

// calls are all that may meet somebody else's operation. Each has a deadline, or is a call that has
// none and does not wait for a process that is stopped.
func (x *deadlined) calls(ctx context.Context) map[string]func() error {
	put := func(r *arena.Ring, id byte, f func(body []byte, hs []arena.Handle) error) func() error {
		return func() error {
			err := f([]byte{id}, []arena.Handle{x.h})
			if err == nil && r == x.ring {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.put = append(x.put, id)
			}
			return err
		}
	}
	get := func(f func(m *arena.Message) error) func() error {
		return func() error {
			var m arena.Message
			err := f(&m)
			if err == nil {
				x.take(&m)
			}
			return err
		}
	}
	all := map[string]func() error{
		"put": put(x.ring, 10, func(b []byte, hs []arena.Handle) error { return x.ring.Put(ctx, b, hs, false) }),
		"put elsewhere": put(x.other, 11, func(b []byte, hs []arena.Handle) error {
			return x.other.Put(ctx, b, hs, false)
		}),
		"put without blocks": put(x.ring, 12, func(b []byte, _ []arena.Handle) error {
			return x.ring.Put(ctx, b, nil, false)
		}),
		"try put": put(x.ring, 13, func(b []byte, hs []arena.Handle) error { return x.ring.TryPut(b, hs, false) }),
		"try get": get(x.ring.TryGet),
		"bind":    func() error { return x.d.Bind(ctx, "another", nil, []arena.Handle{x.h}) },
		"unlink":  func() error { return x.d.Unlink("bound") },
		"look up": get(func(m *arena.Message) error { return x.d.Lookup("bound", m) }),
		"retain":  func() error { return errors.Join(x.d.Retain(x.h), x.d.Release(x.h)) },
		"acquire": func() error { return errors.Join(x.sem.Acquire(ctx), x.sem.Release()) },
		"release": func() error { return x.sem.Release() },
		"permits": func() error { _, err := x.sem.Permits(); return err },
		"permit":  x.sem.TryAcquire,
		"watch":   func() error { return x.sem.Watch(ctx, func(int) bool { return true }) },
		"names":   func() error { x.d.Names(); return nil },
		"report":  func() error { x.d.Report(); return nil },
		"alloc":   func() error { return x.alloc(x.d.Alloc(3 << 20)) },
		"alloc ring": func() error {
			r, a, b, err := x.d.NewRing(arena.RingOptions{Capacity: 100})
			if err != nil {
				return err
			}
			err = r.TryPut(nil, []arena.Handle{x.h}, false)
			r.Close()
			return errors.Join(err, x.d.Release(a), x.d.Release(b), x.d.Release(r.Handle()))
		},
		"alloc wait": func() error { return x.alloc(x.d.AllocWait(ctx, 5<<20)) },
		"reap":       func() error { _, err := x.d.Reap(); return err },
	}
	for i := range 3 {
		all[fmt.Sprint("get ", i)] = get(func(m *arena.Message) error { return x.ring.Get(ctx, m) })
	}
	return all
}

func (x *deadlined) alloc(h arena.Handle, err error) error {
	if err != nil {
		return err
	}
	return x.d.Release(h)
}

// settle waits until the dead are reaped, takes what is left and compares.
func (x *deadlined) settle(t *testing.T) {
	t.Helper()
	untilReaped(t, x.d)
	var m arena.Message
	for x.ring.TryGet(&m) == nil {
		x.take(&m)
	}
	slices.Sort(x.put)
	slices.Sort(x.got)
	lost := len(x.put)
	for i, id := range x.got {
		if i > 0 && x.got[i-1] == id {
			t.Errorf("message %d came twice", id)
		}
		if !slices.Contains(x.put, id) {
			t.Errorf("message %d came, whose put failed", id)
			lost++
		}
		lost--
	}
	if lost > x.dropped {
		t.Errorf("%d messages of %v are lost, %v came", lost, x.put, x.got)
	}
	for _, n := range x.d.Names() {
		testutil.NoError(t, x.d.Unlink(n))
	}
	x.ring.Close()
	x.other.Close()
	x.sem.Close()
	for _, h := range x.held {
		testutil.NoError(t, x.d.Release(h))
	}
	testutil.Eventually(t, func() bool { return x.d.Stats().Blocks == 0 }, "blocks are left")
	wantRest(t, x.d, 0)
}

// A process is stopped in the middle of each operation: everybody else's calls end by their
// deadlines, or at once. Then it is killed, and nothing is lost but what it had, twice there, or
// left behind.
func TestDeadline_IsKeptWhereAProcessIsStopped(t *testing.T) {
	names := []string{lockedCell}
	for _, halt := range arena.Halts {
		names = append(names, halt.Name)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newDeadlined(t)
			a := x.halt(t, name)
			a.stop()
			x.keep(t)
			a.kill()
			x.settle(t)
		})
	}
}

// A reaper is stopped and keeps the recovery lock, and another process has been killed in the
// middle of an operation, which nobody can end meanwhile.
func TestDeadline_IsKeptWhereTheReaperIsStopped(t *testing.T) {
	for _, halt := range arena.Halts[:len(arena.Halts)-1] {
		if halt.Name == "reaping" {
			continue
		}
		t.Run(halt.Name, func(t *testing.T) {
			t.Parallel()
			x := newDeadlined(t)
			reaper := x.halt(t, "reaping")
			reaper.stop()
			x.halt(t, halt.Name).kill()
			x.keep(t)
			reaper.kill()
			x.settle(t)
		})
	}
}

// halt starts a process that goes up to a point in an operation.
func (x *deadlined) halt(t *testing.T, name string) *actor {
	t.Helper()
	a := start(t, x.d, "halted", name, argOf(x.ring.Handle()), argOf(x.ring.Senders()),
		argOf(x.ring.Receivers()), argOf(x.h), argOf(x.sem.Handle()))
	a.hear()
	if strings.HasPrefix(name, "get") {
		x.dropped++
	}
	return a
}

// keep makes all calls at once, and fails unless all return.
func (x *deadlined) keep(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadlineOf)
	defer cancel()
	ended := make(map[string]<-chan error)
	for call, f := range x.calls(ctx) {
		ended[call] = async(f)
	}
	late := time.After(deadlineSlack)
	kept := 0
	for call, e := range ended {
		select {
		case err := <-e:
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				kept++
			}
		case <-late:
			t.Fatalf("%s, and maybe others, has not ended %v after its deadline", call, deadlineSlack)
		}
	}
	if kept < len(ended)/2 {
		t.Errorf("only %d of %d calls succeeded or ended with their deadline", kept, len(ended))
	}
}
