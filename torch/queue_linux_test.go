package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// putFiles lets Python put the files comm and stat of its /proc into queues, as descriptors.
func putFiles(k *talk, queues string) {
	k.ask("eval", "[q.put(multiprocessing.reduction.DupFd(os.open(f'/proc/self/{n}', os.O_RDONLY)))"+
		" for q in ("+queues+",) for n in ('comm', 'stat')]")
	time.Sleep(50 * time.Millisecond) // for the thread that feeds a Queue
}

// wantFile closes a file of putFiles that a call has returned.
func wantFile(t *testing.T, f *os.File, err error, want string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", want, err)
		return
	}
	defer f.Close()
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || filepath.Base(path) != want {
		t.Errorf("the message has %s, and not %s: %v", path, want, err)
	}
}

// whileStopped stops Python while do runs.
func whileStopped(t *testing.T, k *talk, do func()) {
	t.Helper()
	if err := k.p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer k.p.Signal(syscall.SIGCONT)
	testutil.Eventually(t, func() bool { return state(k.p.PID()) == "T" }, "waited in vain for Python to be stopped")
	do()
}

// wantDeadline gets from a queue whose sender is stopped, and wants the end of the context in time.
func wantDeadline(t *testing.T, ctx context.Context, q Queue) {
	t.Helper()
	begin := time.Now()
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if v, err := q.Get(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("from a stopped sender: %v, %v", v, err)
		CloseAll(v)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("a Get of 50 ms took %v", took)
	}
}

// TestQueue_GetLosesNothing takes messages with descriptors from a Python that is stopped. A Get
// ends with its context, and the next one has the message, in its order.
func TestQueue_GetLosesNothing(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k, b := equip(t, py)
		putFiles(k, "queue, simple")
		for i, q := range []Queue{b.queue, b.queue, b.simple, b.simple} {
			whileStopped(t, k, func() {
				wantDeadline(t, k.ctx, q)
				wantDeadline(t, k.ctx, q)
			})
			f, err := As[*os.File](q.Get(k.ctx))
			wantFile(t, f, err, []string{"comm", "stat"}[i%2])
		}
		k.bye()
	})
}

// TestQueue_AWaiterHasWhatWasGivenBack lets a Get wait for a second message while the first one is
// given back.
func TestQueue_AWaiterHasWhatWasGivenBack(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k, b := equip(t, py)
		k.ask("eval", "simple.put(multiprocessing.reduction.DupFd(os.open('/proc/self/stat', os.O_RDONLY)))")
		got := make(chan error, 1)
		var f *os.File
		whileStopped(t, k, func() {
			soon, cancel := context.WithTimeout(k.ctx, 200*time.Millisecond)
			defer cancel()
			time.AfterFunc(50*time.Millisecond, func() {
				var err error
				f, err = As[*os.File](b.simple.Get(k.ctx))
				got <- err
			})
			if v, err := b.simple.Get(soon); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("from a stopped sender: %v, %v", v, err)
			}
		})
		select {
		case err := <-got:
			wantFile(t, f, err, "stat")
		case <-time.After(5 * time.Second):
			t.Error("the waiter does not get the message that was given back")
			b.simple.Close()
			<-got
		}
		k.bye()
	})
}

// TestQueue_CloseGivesBackWhatHasBegun closes a queue whose Get has ended in the middle of a
// message: the descriptor does not stay open in Python.
func TestQueue_CloseGivesBackWhatHasBegun(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k, b := equip(t, py)
		const open = "(__import__('gc').collect(), len(os.listdir('/proc/self/fd')))[1]"
		k.ask("eval", "simple.put(multiprocessing.reduction.DupFd(os.open('/proc/self/stat', os.O_RDONLY)))")
		f, err := As[*os.File](b.simple.Get(k.ctx)) // the first one has started the thread that gives descriptors
		wantFile(t, f, err, "stat")
		const put = "(fd := os.open('/proc/self/stat', os.O_RDONLY)," +
			" simple.put(multiprocessing.reduction.DupFd(fd)), os.close(fd)) and None"
		before := k.ask("eval", open).(int64)
		k.ask("eval", put)
		whileStopped(t, k, func() {
			wantDeadline(t, k.ctx, b.simple)
			if err := b.simple.Close(); err != nil {
				t.Error(err)
			}
		})
		testutil.Eventually(t, func() bool { return k.ask("eval", open).(int64) <= before },
			"waited in vain for Python to close the descriptor")
		k.bye()
	})
}
