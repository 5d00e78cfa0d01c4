package ipc_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/wire"
)

// A load is a value whose copying can be stopped in the middle.
type load struct{ half, rest []byte }

// midway is called in the middle of writing or reading a load. It is set in victims only.
var midway = func(*load) {}

func (l *load) MarshalWire(e *wire.Encoder) error {
	e.ArrayLen(2)
	e.Bytes(l.half)
	midway(l)
	e.Bytes(l.rest)
	return nil
}

func (l *load) UnmarshalWire(d *wire.Decoder) (err error) {
	if err := d.ArrayOf(2); err != nil {
		return err
	}
	if l.half, err = d.Bytes(); err != nil {
		return err
	}
	midway(l)
	l.rest, err = d.Bytes()
	return err
}

// A victim's part is to go to a place and to die there: by itself if it is told to, otherwise by a signal.
type victimPart struct {
	Place string
	Tools *toolbox
	Out   *ipc.Sender[load]
	In    *ipc.Receiver[load]
	Conn  *ipc.Conn[load]
	There *ipc.Event            // set by the victim when it is there, or about to be
	Die   *ipc.Receiver[string] // how
}

var victim = newRole("victim", func(ctx context.Context, v victimPart) error {
	go func() {
		switch how, _ := v.Die.Get(ctx); how {
		case "os.Exit":
			os.Exit(3)
		case "panic":
			panic("as it was told")
		}
	}()
	err := placeNamed(v.Place).victim(ctx, v)
	return errors.Join(err, errors.New("nobody killed the victim"))
})

// there says that the victim is where it is to die. Who is about to wait says so a little later.
func (v victimPart) there() { v.There.Set() }

func (v victimPart) soon() {
	go func() {
		time.Sleep(2 * time.Millisecond) // it is parked then, as a rule; if not, it dies on the way
		v.There.Set()
	}()
}

// stay says so and waits for death.
func (v victimPart) stay(err error) error {
	if err == nil {
		v.there()
		select {}
	}
	return err
}

// A place is where a victim dies, and what the survivor is doing meanwhile.
type place struct {
	name     string
	before   func(ctx context.Context, v victimPart) error // survivor, before there is a victim
	victim   func(ctx context.Context, v victimPart) error
	survivor func(ctx context.Context, v victimPart) error // its end of the queue is the one that the victim has not
	died     error                                         // what the survivor is told beside who it was; nil: it goes on as ever
	stopped  error                                         // what its deadline tells it, if the victim was only stopped
}

func until(f func() error) error {
	for {
		if err := f(); err != nil {
			return err
		}
	}
}

// locks is the place in which a lock is held.
func locks(name string, lock func(ctx context.Context, b *toolbox) error, repair func(b *toolbox) error) place {
	return place{
		name: name, died: ipc.ErrOwnerDied, stopped: ipc.ErrLocked,
		victim: func(ctx context.Context, v victimPart) error { return v.stay(lock(ctx, v.Tools)) },
		survivor: func(ctx context.Context, v victimPart) error {
			err := lock(ctx, v.Tools)
			if errors.Is(err, ipc.ErrOwnerDied) {
				err = errors.Join(err, repair(v.Tools))
			}
			return err
		},
	}
}

var someone = ipc.NewOwner()

func getAll(ctx context.Context, in interface {
	Get(context.Context) (load, error)
}) error {
	return until(func() error { _, err := in.Get(ctx); return err })
}

// connEnd makes a pipe look like the ends of a queue.
type connEnd struct{ *ipc.Conn[load] }

func (c connEnd) Get(ctx context.Context) (load, error) { return c.Recv(ctx) }
func (c connEnd) Put(ctx context.Context, l load) error { return c.Send(ctx, l) }

type putter interface {
	Put(context.Context, load) error
}

type getter interface {
	Get(context.Context) (load, error)
}

// channel is the places of a queue or a pipe.
func channel(name string, out func(v victimPart) putter, in func(v victimPart) getter) []place {
	stuck := func(v victimPart) {
		midway = func(*load) { v.there(); select {} }
	}
	gets := func(ctx context.Context, v victimPart) error { return getAll(ctx, in(v)) }
	puts := func(ctx context.Context, v victimPart) error {
		return until(func() error { return out(v).Put(ctx, load{make([]byte, 100), nil}) })
	}
	return []place{
		{name: name + "/blocked in send", died: ipc.ErrClosed, stopped: ipc.ErrEmpty, survivor: gets,
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return puts(ctx, v) }},
		{name: name + "/blocked in receive", died: ipc.ErrClosed, stopped: ipc.ErrFull, survivor: puts,
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return gets(ctx, v) }},
		{name: name + "/in the middle of a copy out", died: ipc.ErrClosed, stopped: ipc.ErrEmpty, survivor: gets,
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return puts(ctx, v) }},
		{name: name + "/in the middle of a copy in", died: ipc.ErrClosed, stopped: ipc.ErrFull, survivor: puts,
			before: func(ctx context.Context, v victimPart) error { return out(v).Put(ctx, load{make([]byte, 1<<20), nil}) },
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return gets(ctx, v) }},
	}
}

func allPlaces() []place {
	barrier := func(ctx context.Context, v victimPart) error { _, err := v.Tools.Barrier.Wait(ctx); return err }
	all := append(
		channel("queue", func(v victimPart) putter { return v.Out }, func(v victimPart) getter { return v.In }),
		channel("pipe", func(v victimPart) putter { return connEnd{v.Conn} }, func(v victimPart) getter { return connEnd{v.Conn} })...)
	return append(all, []place{
		locks("mutex/holding", func(ctx context.Context, b *toolbox) error { return b.Mutex.Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.Mutex.MarkConsistent(), b.Mutex.Unlock()) }),
		locks("rwmutex/writing", func(ctx context.Context, b *toolbox) error { return b.RW.Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.RW.MarkConsistent(), b.RW.Unlock()) }),
		locks("recursive mutex/holding twice",
			func(ctx context.Context, b *toolbox) error {
				if err := b.Recursive.Lock(ctx, someone); err != nil {
					return err
				}
				return b.Recursive.Lock(ctx, someone)
			},
			func(b *toolbox) error {
				return errors.Join(b.Recursive.MarkConsistent(someone), b.Recursive.Unlock(someone))
			}),
		locks("cond/holding the lock", func(ctx context.Context, b *toolbox) error { return b.Cond.Mutex().Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.Cond.Mutex().MarkConsistent(), b.Cond.Mutex().Unlock()) }),
		locks("value/holding its lock", func(ctx context.Context, b *toolbox) error { return b.Value.Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.Value.MarkConsistent(), b.Value.Unlock()) }),
		{
			name: "array/in the middle of a copy", died: ipc.ErrOwnerDied, stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error {
				if err := v.Tools.Array.Lock(ctx); err != nil {
					return err
				}
				v.there()
				return until(func() error { return v.Tools.Array.Write(0, []int16{4, 5, 6}) })
			},
			survivor: func(ctx context.Context, v victimPart) error {
				err := v.Tools.Array.Lock(ctx)
				if errors.Is(err, ipc.ErrOwnerDied) {
					err = errors.Join(err, v.Tools.Array.MarkConsistent(), v.Tools.Array.Unlock())
				}
				return err
			},
		},
		{
			name:   "mutex/waiting",
			before: func(ctx context.Context, v victimPart) error { return v.Tools.Mutex.Lock(ctx) },
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return v.stay(v.Tools.Mutex.Lock(ctx))
			},
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tools.Mutex.Unlock(), v.Tools.Mutex.TryLock(), v.Tools.Mutex.Unlock())
			},
		},
		{
			name: "rwmutex/reading", stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error { return v.stay(v.Tools.RW.RLock(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				err := v.Tools.RW.Lock(ctx)
				if err == nil {
					err = v.Tools.RW.Unlock()
				}
				return err
			},
		},
		{
			name: "semaphore/holding", stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error { return v.stay(v.Tools.Semaphore.Acquire(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				err := v.Tools.Semaphore.Acquire(ctx)
				if err == nil {
					err = v.Tools.Semaphore.Release()
				}
				return err
			},
		},
		{
			name:   "semaphore/waiting",
			before: func(ctx context.Context, v victimPart) error { return v.Tools.Semaphore.Acquire(ctx) },
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return v.stay(v.Tools.Semaphore.Acquire(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tools.Semaphore.Release(), v.Tools.Semaphore.TryAcquire(), v.Tools.Semaphore.Release())
			},
		},
		{
			name: "cond/inside wait",
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return errors.Join(v.Tools.Cond.Mutex().Lock(ctx), v.Tools.Cond.Wait(ctx), v.stay(nil))
			},
			survivor: func(ctx context.Context, v victimPart) error {
				c := v.Tools.Cond
				if err := c.Mutex().Lock(ctx); err != nil {
					return err
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					if c.Mutex().Lock(ctx) == nil { // only when the survivor waits
						c.NotifyAll()
						c.Mutex().Unlock()
					}
				}()
				err := c.Wait(ctx)
				err = errors.Join(err, c.Mutex().Unlock())
				<-done
				return err
			},
		},
		{
			name:   "event/inside wait",
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return v.stay(v.Tools.Event.Wait(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tools.Event.Set(), v.Tools.Event.Wait(ctx))
			},
		},
		{
			name: "barrier/inside", died: ipc.ErrBroken, stopped: ipc.ErrBroken,
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return errors.Join(barrier(ctx, v), v.stay(nil))
			},
			survivor: barrier,
		},
		{
			name: "barrier/on the way to it", died: ipc.ErrBroken, stopped: ipc.ErrBroken,
			victim:   func(ctx context.Context, v victimPart) error { return v.stay(nil) },
			survivor: barrier,
		},
		{
			name: "barrier/in its action", died: ipc.ErrBroken, stopped: ipc.ErrBroken,
			victim: func(ctx context.Context, v victimPart) error {
				v.Tools.Barrier.Action = func() error { return v.stay(nil) }
				for range 2 {
					go barrier(ctx, v)
				}
				return barrier(ctx, v)
			},
			survivor: barrier,
		},
		{
			name: "once/in the middle", stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error {
				return v.Tools.Once.Do(ctx, func() error { return v.stay(nil) })
			},
			survivor: func(ctx context.Context, v victimPart) error {
				again := errors.New("it was not done again")
				err := v.Tools.Once.Do(ctx, func() error { again = nil; return nil })
				if err == nil {
					err = again
				}
				return err
			},
		},
	}...)
}

func placeNamed(name string) place {
	for _, p := range allPlaces() {
		if p.name == name {
			return p
		}
	}
	panic("there is no place " + name)
}

// bound is how long a survivor may take. What it should take is milliseconds.
const bound = 20 * time.Second

// Wherever a process dies, those who wait for it return, and say who it was and what its death means.
func TestDeathMatrix(t *testing.T) {
	for _, p := range allPlaces() {
		for _, how := range []string{"SIGKILL", "SIGSEGV", "SIGSTOP+deadline", "os.Exit", "panic"} {
			t.Run(p.name+"/"+how, func(t *testing.T) { die(t, p, how) })
		}
	}
}

func die(t *testing.T, p place, how string) {
	d := shared(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), bound, errors.New("the survivor hangs"))
	defer cancel()
	mine, theirs, kill := stage(t, p)
	if p.before != nil {
		check(t, p.before(ctx, mine))
	}
	cmd := victim.startSaying(t, d, theirs, io.Discard)
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	letGo(t, theirs)
	check(t, theirs.There.Wait(ctx))
	deadline := ctx
	switch how {
	case "SIGKILL":
		check(t, cmd.Process.Kill())
	case "SIGSEGV":
		check(t, cmd.Process.Signal(syscall.SIGSEGV))
	case "SIGSTOP+deadline":
		check(t, cmd.Process.Signal(syscall.SIGSTOP))
		awaitStop(t, cmd)
		var end context.CancelFunc
		deadline, end = context.WithTimeout(ctx, 30*time.Millisecond)
		defer end()
	default:
		check(t, kill.Put(ctx, how))
	}
	if how != "SIGSTOP+deadline" {
		cmd.Wait()
	}
	err := p.survivor(deadline, mine)
	t.Logf("process %d: %v", cmd.Process.Pid, err)
	judge(t, p, how, cmd, err)
}

// stage makes everything, and parts the ends.
func stage(t *testing.T, p place) (mine, theirs victimPart, kill *ipc.Sender[string]) {
	t.Helper()
	event, err := ipc.NewEvent()
	check(t, err)
	t.Cleanup(func() { event.Close() })
	orders := newQueue[string](t, 1)
	mine = victimPart{Place: p.name, Tools: newToolbox(t), There: event}
	var three error // parties, so that it takes more than the victim and a survivor
	check(t, mine.Tools.Barrier.Close())
	mine.Tools.Barrier, three = ipc.NewBarrier(3)
	check(t, three)
	theirs = mine
	theirs.Die = orders.Receiver()
	q := newQueue[load](t, 2)
	a, b, err := ipc.Pipe[load]()
	check(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	switch kind, what, _ := strings.Cut(p.name, "/"); {
	case kind == "queue" && (strings.HasSuffix(what, "send") || strings.HasSuffix(what, "out")):
		theirs.Out, mine.In = q.Sender(), q.Receiver()
	case kind == "queue":
		theirs.In, mine.Out = q.Receiver(), q.Sender()
	case kind == "pipe":
		theirs.Conn, mine.Conn = a, b
	}
	return mine, theirs, orders.Sender()
}

// letGo closes the survivor's copies of the victim's ends.
func letGo(t *testing.T, theirs victimPart) {
	t.Helper()
	if theirs.Out != nil {
		check(t, theirs.Out.Close())
	}
	if theirs.In != nil {
		check(t, theirs.In.Close())
	}
	if theirs.Conn != nil {
		check(t, theirs.Conn.Close())
	}
}

// awaitStop returns when the kernel says that the process has stopped.
func awaitStop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	for ctx := watched(t); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		check(t, err)
		if strings.Contains(string(status), ") T ") {
			return
		}
	}
	t.Fatal("the victim does not stop")
}

func judge(t *testing.T, p place, how string, cmd *exec.Cmd, err error) {
	t.Helper()
	switch {
	case how == "SIGSTOP+deadline" && p.stopped != nil:
		wantErr(t, err, p.stopped, context.DeadlineExceeded)
	case how == "SIGSTOP+deadline" || p.died == nil:
		check(t, err)
	default:
		var peer *shm.PeerError
		if !errors.As(err, &peer) || peer.PID != cmd.Process.Pid {
			t.Errorf("the error is %v, and does not name process %d", err, cmd.Process.Pid)
		}
		wantErr(t, err, p.died)
	}
}
