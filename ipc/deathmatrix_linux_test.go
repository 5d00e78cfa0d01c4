package ipc_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A load is a value whose copying can be stopped in the middle.
type load struct{ half, rest []byte }

// midway is called in the middle of writing or reading a load. It is set in victims only.
var midway = func(*load) {}

func (l *load) MarshalWire(e *codec.Encoder) error {
	e.ArrayLen(2)
	e.Bytes(l.half)
	midway(l)
	e.Bytes(l.rest)
	return nil
}

func (l *load) UnmarshalWire(d *codec.Decoder) (err error) {
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

// A victim's part is to go to a place and to die there: by itself if it is told to, otherwise by a
// signal.
type victimPart struct {
	Place string
	Tools *toolbox
	Out   *ipc.Sender[load]
	In    *ipc.Receiver[load]
	Conn  *ipc.PipeEnd[load, load]
	Open  *ipc.Queue[load] // as many values as there is memory for
	Tasks *ipc.JoinableQueue[load]
	List  *ipc.ShareableList
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

// there says that the victim is where it is to die. A process that is about to wait says so when it
// is parked.
func (v victimPart) there() { v.There.Set() }

func (v victimPart) soon() {
	go func() {
		for parked() < 2 { // it, and the goroutine that waits to be told how to die
			time.Sleep(time.Millisecond)
		}
		v.There.Set()
	}()
}

// parked returns how many goroutines of this process are parked in shared memory.
func parked() (n int) {
	all := make([]byte, 1<<20)
	for _, g := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if state, frames, _ := strings.Cut(g, "\n"); strings.Contains(state, "[select") &&
			strings.Contains(frames, "park.(*Queue).WaitOnce(") {
			n++
		}
	}
	return n
}

// stay says so and waits for death.
func (v victimPart) stay(err error) error {
	if err == nil {
		v.there()
		select {}
	}
	return err
}

// bound is how long a survivor may take. What it should take is milliseconds.
const bound = 20 * time.Second

// Wherever a process dies, those who wait for it return, and say who it was and what its death
// means.
func TestDeath_Matrix(t *testing.T) {
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
		testutil.NoError(t, p.before(ctx, mine))
	}
	cmd := victim.startSaying(t, d, theirs, io.Discard)
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	letGo(t, theirs)
	testutil.NoError(t, theirs.There.Wait(ctx))
	stop := how == "SIGSTOP+deadline"
	result := make(chan error, 1)
	if p.waits && !stop {
		others := parked()
		go func() { result <- p.survivor(ctx, mine) }()
		for end := time.Now().Add(time.Second); parked() <= others && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // if it is not parked by then it comes later, and must return all the same
		}
	}
	begin := time.Now()
	switch how {
	case "SIGKILL":
		testutil.NoError(t, cmd.Process.Kill())
	case "SIGSEGV":
		testutil.NoError(t, cmd.Process.Signal(syscall.SIGSEGV))
	case "SIGSTOP+deadline":
		testutil.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		awaitStop(t, cmd)
	default:
		testutil.NoError(t, kill.Put(ctx, how))
	}
	if !stop {
		cmd.Wait()
		diedOf(t, how, cmd.ProcessState)
	}
	if stop || !p.waits {
		deadline, end := ctx, context.CancelFunc(func() {})
		if stop {
			deadline, end = context.WithTimeout(ctx, patience)
		}
		begin = time.Now()
		result <- p.survivor(deadline, mine)
		end()
	}
	err := <-result
	t.Logf("process %d, %v: %v", cmd.Process.Pid, time.Since(begin).Round(10*time.Microsecond), err)
	judge(t, p, how, cmd, err)
}

// patience is the deadline of a waiter for a process that is stopped.
const patience = 30 * time.Millisecond

// diedOf checks that the victim died of what it was to die of, and not of an error on its way.
func diedOf(t *testing.T, how string, state *os.ProcessState) {
	t.Helper()
	status := state.Sys().(syscall.WaitStatus)
	ok := status.ExitStatus() == 2 // what Go's runtime exits with after a panic and a signal that it dies of
	switch how {
	case "SIGKILL":
		ok = status.Signaled() && status.Signal() == syscall.SIGKILL
	case "SIGSEGV": // an emulator that is told so while it translates dies of it itself, before Go's runtime is asked
		ok = ok || status.Signaled() && status.Signal() == syscall.SIGSEGV
	case "os.Exit":
		ok = status.ExitStatus() == 3
	}
	if !ok {
		t.Errorf("the victim ended with %v", state)
	}
}

// stage makes everything, and parts the ends.
func stage(t *testing.T, p place) (mine, theirs victimPart, kill *ipc.Sender[string]) {
	t.Helper()
	event, err := ipc.NewEvent()
	testutil.NoError(t, err)
	t.Cleanup(func() { event.Close() })
	orders := newQueue[string](t, 1)
	mine = victimPart{Place: p.name, Tools: newToolbox(t), There: event}
	var errs [4]error
	testutil.NoError(t, mine.Tools.Barrier.Close())
	mine.Tools.Barrier, errs[0] = ipc.NewBarrier(3) // so that it takes more than the victim and a survivor
	mine.Open, errs[1] = ipc.NewQueue[load](ipc.Unbounded)
	mine.Tasks, errs[2] = ipc.NewJoinableQueue[load](1)
	mine.List, errs[3] = ipc.NewShareableList("nothing yet", 7)
	testutil.NoError(t, errors.Join(errs[:]...))
	t.Cleanup(func() { testutil.NoError(t, errors.Join(mine.Open.Close(), mine.Tasks.Close(), mine.List.Close())) })
	theirs = mine
	theirs.Die = orders.Receiver()
	q := newQueue[load](t, 2)
	a, b, err := ipc.Pipe[load, load]()
	testutil.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	switch p.has {
	case aSender:
		theirs.Out, mine.In = q.Sender(), q.Receiver()
	case aReceiver:
		theirs.In, mine.Out = q.Receiver(), q.Sender()
	case aSide:
		theirs.Conn, mine.Conn = a, b
	}
	return mine, theirs, orders.Sender()
}

// letGo closes the survivor's copies of the victim's ends.
func letGo(t *testing.T, theirs victimPart) {
	t.Helper()
	if theirs.Out != nil {
		testutil.NoError(t, theirs.Out.Close())
	}
	if theirs.In != nil {
		testutil.NoError(t, theirs.In.Close())
	}
	if theirs.Conn != nil {
		testutil.NoError(t, theirs.Conn.Close())
	}
}

// awaitStop returns when the kernel says that the process has stopped.
func awaitStop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	testutil.Eventually(t, func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		testutil.NoError(t, err)
		return strings.Contains(string(status), ") T ")
	}, "the victim does not stop")
}

func judge(t *testing.T, p place, how string, cmd *exec.Cmd, err error) {
	t.Helper()
	switch {
	case how == "SIGSTOP+deadline" && p.stopped != nil:
		testutil.ErrorIs(t, err, p.stopped, context.DeadlineExceeded)
	case how == "SIGSTOP+deadline" || p.died == nil:
		testutil.NoError(t, err)
	default:
		var peer *arena.PeerError
		if !errors.As(err, &peer) || peer.PID != cmd.Process.Pid {
			t.Errorf("the error is %v, and does not name process %d", err, cmd.Process.Pid)
		}
		testutil.ErrorIs(t, err, p.died)
	}
}
