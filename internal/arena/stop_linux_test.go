package arena_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() { actors["victim"] = actVictim }

// stop halts the actor until the end of the test, as a debugger does.
func (a *actor) stop() {
	a.t.Helper()
	testutil.NoError(a.t, a.cmd.Process.Signal(syscall.SIGSTOP))
	testutil.Eventually(a.t, func() bool { return stopped(a.t, a.cmd.Process.Pid) }, "an actor does not stop")
}

func stopped(t testing.TB, pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	testutil.NoError(t, err)
	return strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T")
}

// goOn ends that.
func (a *actor) goOn() {
	a.t.Helper()
	testutil.NoError(a.t, a.cmd.Process.Signal(syscall.SIGCONT))
}

// What the victim has, and is killed with.
type victims struct {
	fromIt, toIt                  *arena.Ring // of which it is the last sender, or receiver
	mutex, recursive, writer      *arena.Sync // that it holds
	reader, permit, member, guard *arena.Sync
	block                         arena.Handle // in the middle of whose put it is
	room                          *arena.Ring  // into which somebody else puts it
	handles                       []arena.Handle
}

// bequeath makes all of it in d.
func bequeath(t *testing.T, d *arena.Domain) (v victims) {
	ring := func(opts arena.RingOptions) *arena.Ring {
		r, senders, receivers, err := d.NewRing(opts)
		testutil.NoError(t, err)
		v.handles = append(v.handles, r.Handle(), senders, receivers)
		return r
	}
	cell := func(opts arena.SyncOptions) *arena.Sync {
		s, err := d.NewSync(opts)
		testutil.NoError(t, err)
		v.handles = append(v.handles, s.Handle())
		return s
	}
	v.fromIt = ring(arena.RingOptions{Capacity: 2})
	v.toIt = ring(arena.RingOptions{Capacity: 1})
	v.mutex = cell(arena.SyncOptions{Form: arena.FormMutex})
	v.recursive = cell(arena.SyncOptions{Form: arena.FormMutex})
	v.guard = cell(arena.SyncOptions{Form: arena.FormMutex})
	v.writer = cell(arena.SyncOptions{Form: arena.FormRWMutex})
	v.reader = cell(arena.SyncOptions{Form: arena.FormRWMutex})
	v.permit = cell(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1})
	v.member = cell(arena.SyncOptions{Form: arena.FormBarrier, Limit: 2})
	v.block = alloc(t, d, 64, "x")
	v.handles = append(v.handles, v.block)
	testutil.NoError(t, v.toIt.TryPut(nil, nil, false))
	v.room, _, _ = newRing(t, d, 1)
	return v
}

// releaseEnds leaves the victim the only one that sends and receives.
func (v victims) releaseEnds(t *testing.T, d *arena.Domain) {
	t.Helper()
	testutil.NoError(t, d.Release(v.fromIt.Senders()))
	testutil.NoError(t, d.Release(v.toIt.Receivers()))
}

// actVictim takes everything that a test made for it, and all memory.
func actVictim(d *arena.Domain, args []string) error {
	for _, a := range args {
		if err := d.Import(handleArg(a)); err != nil {
			return err
		}
	}
	ctx := context.Background()
	for i, take := range []func(s *arena.Sync) error{
		func(s *arena.Sync) error { return arena.Mutex{Sync: s}.Lock(ctx) },
		func(s *arena.Sync) error { return arena.RecursiveMutex{Sync: s}.Lock(ctx, 1) },
		func(s *arena.Sync) error { return arena.Mutex{Sync: s}.Lock(ctx) },
		func(s *arena.Sync) error { return arena.RWMutex{Sync: s}.Lock(ctx) },
		func(s *arena.Sync) error { return arena.RWMutex{Sync: s}.RLock(ctx) },
		func(s *arena.Sync) error { return arena.Semaphore{Sync: s}.Acquire(ctx) },
		func(s *arena.Sync) error { return nil },
	} {
		form := []arena.Form{arena.FormMutex, arena.FormMutex, arena.FormMutex, arena.FormRWMutex, arena.FormRWMutex,
			arena.FormSemaphore, arena.FormBarrier}[i]
		s, err := d.OpenSync(handleArg(args[6+i]), form)
		if err == nil {
			err = take(s)
		}
		if err != nil {
			return fmt.Errorf("what is %d: %w", i, err)
		}
	}
	for {
		if _, err := d.Alloc(1 << 20); errors.Is(err, arena.ErrNoSpace) {
			break
		} else if err != nil {
			return err
		}
	}
	if _, err := d.StampPut(handleArg(args[13])); err != nil {
		return err
	}
	say("ready")
	untilKilled()
	return nil
}

// waits are all ways to wait for the victim, each until ctx ends.
func (v victims) waits(ctx context.Context, d *arena.Domain, seat int) map[string]func() error {
	peer := func(cause error, err error) error {
		var p *arena.PeerError
		if !errors.As(err, &p) || p.Seat != seat || !errors.Is(err, cause) {
			return fmt.Errorf("%v, want the death of %d and %v", err, seat, cause)
		}
		return nil
	}
	return map[string]func() error{
		"get":        func() error { return peer(arena.ErrFinished, v.fromIt.Get(ctx, new(arena.Message))) },
		"await":      func() error { return v.fromIt.Await(ctx) },
		"put":        func() error { return peer(arena.ErrFinished, v.toIt.Put(ctx, nil, nil, false)) },
		"await room": func() error { return v.toIt.AwaitRoom(ctx) },
		"lock":       func() error { return peer(arena.ErrOwnerDied, arena.Mutex{Sync: v.mutex}.Lock(ctx)) },
		"recursive lock": func() error {
			return peer(arena.ErrOwnerDied, arena.RecursiveMutex{Sync: v.recursive}.Lock(ctx, 1))
		},
		"read lock":  func() error { return peer(arena.ErrOwnerDied, arena.RWMutex{Sync: v.writer}.RLock(ctx)) },
		"write lock": func() error { return arena.RWMutex{Sync: v.reader}.Lock(ctx) },
		"permit":     func() error { return arena.Semaphore{Sync: v.permit}.Acquire(ctx) },
		"barrier": func() error {
			_, err := arena.Barrier{Sync: v.member}.Wait(ctx, nil)
			return peer(arena.ErrBroken, err)
		},
		"stamp": func() error {
			return v.room.Put(ctx, nil, []arena.Handle{v.block}, false)
		},
		"memory": func() error {
			_, err := d.AllocWait(ctx, 2<<20)
			return err
		},
	}
}

// Those who watch a process are stopped, and it is killed: all who wait for it hear of it, those
// that waited before and those that come afterwards.
func TestStop_OfTheWatchersHidesNoDeath(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			ctx := testutil.Context(t)
			d := newDomain(t, 32<<20)
			v := bequeath(t, d)
			one, other := start(t, d, "hold"), start(t, d, "hold")
			one.hear()
			other.hear()
			cond, err := d.NewSync(arena.SyncOptions{Form: arena.FormCond})
			testutil.NoError(t, err)
			condition := async(func() error {
				m := arena.Mutex{Sync: v.guard}
				if err := m.Lock(ctx); err != nil {
					return err
				}
				_, err := arena.Cond{Sync: cond}.Wait(ctx, m)
				return err
			})
			testutil.Eventually(t, func() bool { return arena.Cond{Sync: cond}.Waiting() == 1 },
				"nobody waits in the cond")
			var args []string
			for _, h := range v.handles {
				args = append(args, argOf(h))
			}
			victim := start(t, d, "victim", args...)
			victim.hear()
			const seat = 3
			v.releaseEnds(t, d)
			if when == "after" {
				one.stop()
				other.stop()
				victim.kill()
			}
			ended := make(map[string]<-chan error)
			for name, wait := range v.waits(ctx, d, seat) {
				ended[name] = async(wait)
			}
			if when == "before" {
				testutil.Eventually(t, func() bool { return d.Parked() == len(ended)+1 }, "not all wait")
				one.stop()
				other.stop()
				victim.kill()
			}
			for name, e := range ended {
				if err := <-e; err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			wantPeer(t, <-condition, seat, arena.ErrOwnerDied)
			one.goOn()
			other.goOn()
		})
	}
}

// Of the two that watch a process one is stopped. Nobody waits here, so nobody doubts.
func TestStop_OfOneWatcherHidesNoDeath(t *testing.T) {
	d := newDomain(t, 32<<20)
	parent := start(t, d, "hold")
	parent.hear()
	child := start(t, d, "hold")
	child.hear()
	parent.stop()
	child.kill()
	untilReaped(t, d)
	parent.goOn()
}
