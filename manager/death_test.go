package manager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A Deadly is an object whose methods end the server.
type Deadly struct{ n int }

func NewDeadly() *Deadly { return &Deadly{} }

func (d *Deadly) PID() int { return os.Getpid() }

// Die ends the process in one of the ways, or stops it, and does not return.
func (d *Deadly) Die(how string) {
	die(how)
	select {}
}

func (d *Deadly) Panic(text string) int { panic(text) }

// Exit ends the goroutine of the method, as t.FailNow does.
func (d *Deadly) Exit() { runtime.Goexit() }

// Left returns the time until the deadline of its context, or 0.
func (d *Deadly) Left(ctx context.Context) int64 {
	if at, ok := ctx.Deadline(); ok {
		return int64(time.Until(at))
	}
	return 0
}

func (d *Deadly) Nil() { *(*int)(nil) = 1 }

func (d *Deadly) Fail() error { return fmt.Errorf("look: %w", os.ErrNotExist) }

func (d *Deadly) Count() int { d.n++; return d.n }

// Wait is a method that takes long, and ends with its caller.
func (d *Deadly) Wait(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

var deadly = manager.Register("Deadly", NewDeadly, (*Deadly).PID, (*Deadly).Die, (*Deadly).Panic,
	(*Deadly).Nil, (*Deadly).Fail, (*Deadly).Count, (*Deadly).Wait, (*Deadly).Exit, (*Deadly).Left)

var deaths = []string{"SIGKILL", "SIGSEGV", "SIGSTOP", "os.Exit", "panic"}

func die(how string) {
	switch how {
	case "os.Exit":
		os.Exit(7)
	case "panic":
		go panic("on purpose") // in another goroutine nothing recovers it
	default:
		kill(os.Getpid(), how)
	}
}

// bound is within which survivors have to know. It is long because the machine may be busy.
const bound = 15 * time.Second

// A victim holds locks and a permit, has a task, is a party of a barrier and waits for a value, an
// event and a notification, all at once.
type victim struct {
	Lock    *manager.Mutex
	RLock   *manager.RecursiveMutex
	Cond    *manager.Cond
	Event   *manager.Event
	Permits *manager.Semaphore
	Barrier *manager.Barrier
	Empty   *manager.JoinableQueue[int]
	Tasks   *manager.JoinableQueue[int]
	Ready   *ipc.Sender[int]
	Die     *ipc.Receiver[string]
}

var beKilled = shoal.Register("manager victim", func(ctx context.Context, _ int, v victim) error {
	if _, err := v.Tasks.Get(ctx); err != nil {
		return err
	}
	if err := errors.Join(v.Lock.Lock(ctx), v.RLock.Lock(ctx), v.RLock.Lock(ctx), v.Cond.Lock(ctx),
		v.Permits.Acquire(ctx)); err != nil {
		return err
	}
	go v.Cond.Wait(ctx)
	go v.Event.Wait(ctx)
	go v.Barrier.Wait(ctx)
	go v.Empty.Get(ctx)
	if err := v.Ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	how, err := v.Die.Get(ctx)
	if err != nil {
		return err
	}
	die(how)
	<-ctx.Done()
	return nil
})

func TestDeath_Matrix(t *testing.T) {
	for _, how := range deaths {
		t.Run("client inside a call/"+how, func(t *testing.T) { clientDies(t, how) })
		t.Run("server inside a call/"+how, func(t *testing.T) { serverDies(t, how) })
	}
}

func clientDies(t *testing.T, how string) {
	ctx, m := testutil.Context(t), process(t)
	var v victim
	var err error
	v.Lock, err = manager.NewMutex(ctx, m)
	closing(t, v.Lock, err)
	v.RLock, err = manager.NewRecursiveMutex(ctx, m)
	closing(t, v.RLock, err)
	v.Cond, err = manager.NewCond(ctx, m)
	closing(t, v.Cond, err)
	v.Event, err = manager.NewEvent(ctx, m)
	closing(t, v.Event, err)
	v.Permits, err = manager.NewBoundedSemaphore(ctx, m, 1)
	closing(t, v.Permits, err)
	v.Barrier, err = manager.NewBarrier(ctx, m, 3)
	closing(t, v.Barrier, err)
	v.Empty, err = manager.NewJoinableQueue[int](ctx, m, ipc.Unbounded)
	closing(t, v.Empty, err)
	v.Tasks, err = manager.NewJoinableQueue[int](ctx, m, ipc.Unbounded)
	closing(t, v.Tasks, err)
	testutil.NoError(t, v.Tasks.Put(ctx, 1))
	ready, err := ipc.NewQueue[int](1)
	closing(t, ready, err)
	order, err := ipc.NewQueue[string](1)
	closing(t, order, err)
	v.Ready, v.Die = ready.Sender(), order.Receiver()
	g := shoal.NewGroup(ctx, shoal.Options{Stderr: new(strings.Builder), Stdout: new(strings.Builder)})
	defer g.Close()
	p := beKilled.Go(g, v)
	pid, err := ready.Get(ctx)
	testutil.NoError(t, err)
	for n := 0; n == 0; { // until it is inside
		n, err = v.Barrier.Waiting(ctx)
		testutil.NoError(t, err)
	}
	testutil.NoError(t, v.Cond.Lock(ctx)) // it has let go of it

	limit, cancel := context.WithTimeout(ctx, bound)
	if how == "SIGSTOP" {
		limit, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
	}
	defer cancel()
	locked, relocked, met, joined := make(chan error, 1), make(chan error, 1), make(chan error, 1), make(chan error, 1)
	permit := make(chan error, 1)
	go func() { relocked <- v.RLock.Lock(limit) }()
	go func() { locked <- v.Lock.Lock(limit) }()
	go func() { permit <- v.Permits.Acquire(limit) }()
	go func() { _, err := v.Barrier.Wait(limit); met <- err }()
	go func() { joined <- v.Tasks.Join(limit) }()
	testutil.NoError(t, order.Put(ctx, how))
	begin := time.Now()
	results := []error{<-locked, <-permit, <-met, <-joined, <-relocked}
	took := time.Since(begin)

	if how == "SIGSTOP" { // it is alive, and keeps what it has
		for _, err := range results {
			testutil.ErrorIs(t, err, context.DeadlineExceeded)
		}
		testutil.NoError(t, kill(pid, "SIGKILL"))
		<-end(ctx, p)
		testutil.NoError(t, func() error {
			err := v.Lock.Lock(ctx)
			testutil.ErrorIs(t, err, manager.ErrOwnerDied)
			return v.Lock.MarkConsistent(ctx)
		}())
	} else {
		testutil.NoError(t, results[1]) // the permit of the dead was returned
		testutil.ErrorIs(t, results[0], manager.ErrOwnerDied)
		testutil.ErrorIs(t, results[2], manager.ErrBroken)
		testutil.ErrorIs(t, results[3], manager.ErrTasksLost)
		testutil.ErrorIs(t, results[4], manager.ErrOwnerDied)
		for _, i := range []int{0, 2, 3, 4} {
			var owner *shm.PeerError
			if !errors.As(results[i], &owner) || owner.PID != pid {
				t.Errorf("%v does not say that it was process %d", results[i], pid)
			}
		}
		testutil.NoError(t, v.Lock.MarkConsistent(ctx))
		testutil.NoError(t, v.Permits.Release(ctx))
		diedOf(t, how, <-end(ctx, p), pid)
	}
	testutil.NoError(t, v.Lock.Unlock(ctx))
	testutil.NoError(t, v.Lock.Lock(ctx))
	testutil.NoError(t, v.Lock.Unlock(ctx))
	testutil.NoError(t, errors.Join(v.Cond.NotifyAll(ctx), v.Event.Set(ctx), v.Event.Wait(ctx), v.Cond.Unlock(ctx)))
	testutil.NoError(t, v.Empty.Put(ctx, 5)) // who waited for it takes nothing with it
	n, err := v.Empty.Get(ctx)
	want(t, n, err, 5)
	t.Logf("noticed after %v: %v", took.Round(time.Microsecond), results[0])
}

// end returns why p ended.
func end(ctx context.Context, p *shoal.Process) <-chan error {
	c := make(chan error, 1)
	c <- p.Wait(ctx)
	return c
}

// diedOf checks the cause that the starter of the process knows.
func diedOf(t *testing.T, how string, err error, pid int) {
	t.Helper()
	var p *shoal.ProcessError
	if !errors.As(err, &p) || p.PID != pid {
		t.Fatalf("%v is not about process %d", err, pid)
	}
	switch how {
	case "SIGKILL":
		if p.Signal != syscall.SIGKILL {
			t.Errorf("signal %v", p.Signal)
		}
	case "SIGSEGV", "panic":
		testutil.ErrorIs(t, err, shoal.ErrPanic) // the Go runtime gave up, and said why
	case "os.Exit":
		if testutil.ErrorIs(t, err, shoal.ErrExited); p.ExitCode != 7 {
			t.Errorf("exit status %d", p.ExitCode)
		}
	}
}

// witness waits in a call to the server, and says what came of it.
type witness struct {
	Empty *manager.Queue[int]
	Limit time.Duration
	Ready *ipc.Sender[bool]
	Saw   *ipc.Sender[seen]
}

type seen struct {
	Err error
	PID int // of the server, if the error knows it
}

var bearWitness = shoal.Register("manager witness", func(ctx context.Context, _ int, w witness) error {
	if _, err := w.Empty.Len(ctx); err != nil {
		return err
	}
	if err := w.Ready.Put(ctx, true); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	_, err := w.Empty.Get(limit)
	s := seen{Err: err}
	var e *shm.PeerError
	if errors.As(err, &e) {
		s.PID = e.PID
	}
	return w.Saw.Put(ctx, s)
})

func serverDies(t *testing.T, how string) {
	ctx, m := testutil.Context(t), process(t)
	d, err := deadly.New(ctx, m)
	closing(t, d, err)
	pid, err := manager.Call[int](ctx, d, "PID")
	want(t, pid, err, m.PID())
	empty, err := manager.NewQueue[int](ctx, m, ipc.Unbounded)
	closing(t, empty, err)
	v, err := manager.NewValue(ctx, m, 1)
	closing(t, v, err)
	ready, err := ipc.NewQueue[bool](1)
	closing(t, ready, err)
	saw, err := ipc.NewQueue[seen](1)
	closing(t, saw, err)
	patience := bound
	if how == "SIGSTOP" {
		patience = 100 * time.Millisecond
	}
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	bearWitness.Go(g, witness{empty, patience, ready.Sender(), saw.Sender()})
	_, err = ready.Get(ctx)
	testutil.NoError(t, err)

	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	waiting := make(chan error, 1)
	go func() { _, err := empty.Get(limit); waiting <- err }()
	begin := time.Now()
	_, err = d.Call(limit, "Die", how)
	took := time.Since(begin)
	other := <-waiting
	there, gerr := saw.Get(ctx)
	testutil.NoError(t, gerr)
	if how == "SIGSTOP" {
		testutil.ErrorIs(t, err, context.DeadlineExceeded)
		testutil.ErrorIs(t, other, context.DeadlineExceeded)
		testutil.ErrorIs(t, there.Err, context.DeadlineExceeded)
		testutil.NoError(t, kill(pid, "SIGKILL"))
		for ctx.Err() == nil && !errors.Is(err, manager.ErrServerDied) {
			_, err = empty.Get(ctx)
		}
		return
	}
	for _, err := range []error{err, other, there.Err} {
		testutil.ErrorIs(t, err, manager.ErrServerDied)
	}
	if there.PID != pid {
		t.Errorf("another process says it was %d, not %d", there.PID, pid)
	}
	diedOf(t, how, err, pid)
	_, err = v.Get(ctx)
	testutil.ErrorIs(t, err, manager.ErrServerDied)
	_, err = manager.NewMutex(ctx, m)
	testutil.ErrorIs(t, err, manager.ErrServerDied)
	t.Logf("noticed after %v: %v", took.Round(time.Microsecond), err)
}
