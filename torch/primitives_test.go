package torch

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A toolbox has one of each object that Go makes for Python.
type toolbox struct {
	queue, simple                   Queue
	lock, rlock, semaphore, bounded Semaphore
	event                           Event
	cond                            Cond
}

// equip starts a Python process that has a new toolbox.
func equip(t *testing.T, py peerPython) (*talk, toolbox) {
	b := toolbox{
		testutil.Value(NewQueue(2, Options{}))(t), testutil.Value(NewSimpleQueue(Options{}))(t),
		testutil.Value(NewLock())(t), testutil.Value(NewRLock())(t), testutil.Value(NewSemaphore(1))(t),
		testutil.Value(NewBoundedSemaphore(1))(t),
		testutil.Value(NewEvent())(t), testutil.Value(NewCond(nil))(t),
	}
	ctx := testContext(t)
	p := testutil.Value(Python{Path: py.path, Dir: "testdata", Env: pythonEnv()}.Spawn(ctx, "plain:primitives",
		b.queue, b.simple, b.lock, b.rlock, b.semaphore, b.bounded, b.event, b.cond))(t)
	t.Cleanup(func() {
		p.Close()
		for _, c := range []interface{ Close() error }{b.queue, b.simple, b.lock, b.rlock, b.semaphore,
			b.bounded, b.event, b.cond} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return &talk{t, ctx, p, p.Conn}, b
}

// wantEval evaluates an expression in Python and compares its value.
func (k *talk) wantEval(code string, want any) {
	k.t.Helper()
	if got := k.ask("eval", code); !reflect.DeepEqual(got, want) {
		k.t.Errorf("%s is %v, not %v", code, got, want)
	}
}

// TestSemaphore_AndItsKindAreSharedWithPython gives objects that Go has made to a Python process,
// and uses them on both sides.
func TestSemaphore_AndItsKindAreSharedWithPython(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k, b := equip(t, py)
		cell(t, "queues", func(t *testing.T) { sharedQueues(t, k, b) })
		cell(t, "locks", func(t *testing.T) { sharedLocks(t, k, b) })
		cell(t, "event", func(t *testing.T) { sharedEvent(t, k, b.event) })
		cell(t, "condition", func(t *testing.T) { sharedCondition(t, k, b.cond) })
		cell(t, "a lock whose holder was killed", func(t *testing.T) { lostLock(t, k, b) })
	})
}

// A namedQueue is one of Go's, and its name in Python.
type namedQueue struct {
	Queue
	name string
}

func sharedQueues(t *testing.T, k *talk, b toolbox) {
	for _, q := range []namedQueue{{b.queue, "queue"}, {b.simple, "simple"}} {
		if err := errors.Join(q.Put(k.ctx, python.Tuple{1, "first"}), q.Put(k.ctx, "second")); err != nil {
			t.Fatal(err)
		}
		if q.name == "queue" {
			k.wantEval("(queue.full(), queue.qsize())", python.Tuple{true, int64(2)})
			full, cancel := context.WithCancel(k.ctx)
			cancel()
			if err := q.Put(full, 3); !errors.Is(err, context.Canceled) {
				t.Errorf("put into a full queue: %v", err)
			}
			if n, err := q.Len(k.ctx); n != 2 || err != nil {
				t.Errorf("a queue of 2 has %d, %v", n, err)
			}
		} else if _, err := q.Len(k.ctx); !errors.Is(err, ErrUnsupported) {
			t.Errorf("the length of a SimpleQueue: %v", err)
		}
		k.wantEval("["+q.name+".get() for _ in range(2)]", []any{python.Tuple{int64(1), "first"}, "second"})
		k.wantEval(q.name+".put((b'x', 7))", nil)
		if v, err := q.Get(k.ctx); err != nil || !reflect.DeepEqual(v, python.Tuple{[]byte("x"), int64(7)}) {
			t.Errorf("from %s: %v, %v", q.name, v, err)
		}
		k.wantEval(q.name+".empty()", true)
	}
	k.wantEval("queue.qsize()", int64(0))
}

// TestQueue_CarriesTensors puts tensors into queues that Go has made, on both sides.
func TestQueue_CarriesTensors(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		all := []namedQueue{{testutil.Value(NewQueue(2, Options{}))(t), "queue"},
			{testutil.Value(NewSimpleQueue(Options{}))(t), "simple"}}
		for _, q := range all {
			defer q.Close()
		}
		k := talkTo(t, py, Options{}, "peer:queues", all[0].Queue, all[1].Queue)
		for _, q := range all {
			x := pattern(k, tensor.Float32, 3)
			if err := q.Put(k.ctx, x); err != nil {
				t.Fatal(err)
			}
			k.wantEval(q.name+".get().add_(1).tolist()", []any{1.0, 2.0, 1.0})
			if got := elements(x); !reflect.DeepEqual(got, []float64{1, 2, 1}) {
				t.Errorf("through %s it is other memory: %v", q.name, got)
			}
			x.Close()
			k.wantEval(q.name+".put((torch.ones(2), 7))", nil)
			v := testutil.Value(q.Get(k.ctx))(t)
			if got := v.(python.Tuple); got[1] != int64(7) ||
				!reflect.DeepEqual(elements(got[0].(*tensor.Tensor)), []float64{1, 1}) {
				t.Errorf("from %s: %v", q.name, got)
			}
			CloseAll(v)
		}
		k.bye()
	})
}

func sharedLocks(t *testing.T, k *talk, b toolbox) {
	for _, l := range []struct {
		Semaphore
		name string
	}{{b.lock, "lock"}, {b.rlock, "rlock"}, {b.semaphore, "semaphore"}, {b.bounded, "bounded"}} {
		if err := l.Acquire(k.ctx); err != nil {
			t.Fatal(err)
		}
		k.wantEval(l.name+".acquire(False)", false)
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		k.wantEval(l.name+".acquire()", true)
		if l.TryAcquire() == nil {
			t.Errorf("%s was acquired twice", l.name)
		}
		k.wantEval(l.name+".release()", nil)
		if n, err := l.Permits(); n != 1 || err != nil {
			t.Errorf("%s is %d after all, %v", l.name, n, err)
		}
	}
	k.wantEval("rlock.acquire() and rlock.acquire()", true)
	k.wantEval("rlock.release()", nil)
	if b.rlock.TryAcquire() == nil {
		t.Error("an RLock that was acquired twice is free after one release")
	}
	k.wantEval("rlock.release()", nil)
	if err := b.bounded.Release(); !errors.Is(err, ErrProtocol) {
		t.Errorf("released too often: %v", err)
	}
	k.wantEval("error(bounded.release)", "ValueError")
	if err := b.semaphore.Release(); err != nil {
		t.Error(err)
	}
	k.wantEval("[semaphore.acquire(False) for _ in range(3)]", []any{true, true, false})
}

func sharedEvent(t *testing.T, k *talk, e Event) {
	if err := k.Send(k.ctx, python.Tuple{"eval", "event.wait(60)"}); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, func() bool { return e.(*event).cond.sleeping.permitCount() == 1 },
		"waited in vain for Python to wait")
	if err := e.Set(k.ctx); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Recv(k.ctx); v != true || err != nil {
		t.Errorf("Python's wait: %v, %v", v, err)
	}
	k.wantEval("event.is_set()", true)
	k.wantEval("event.clear()", nil)
	if set, err := e.IsSet(k.ctx); set || err != nil {
		t.Errorf("set: %v, %v", set, err)
	}
	cancelled, cancel := context.WithCancel(k.ctx)
	cancel()
	if err := e.Wait(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled: %v", err)
	}
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- e.Wait(k.ctx) }()
	}
	k.wantEval("event.set()", nil)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	if err := e.Clear(k.ctx); err != nil {
		t.Error(err)
	}
	k.wantEval("event.is_set()", false)
}

func sharedCondition(t *testing.T, k *talk, c Cond) {
	if err := k.Send(k.ctx, python.Tuple{"eval", "wait_for(cond)"}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- withSemaphore(k.ctx, c.(*condition).semaphore, func() error { return c.Wait(k.ctx) }) }()
	testutil.Eventually(t, func() bool { return c.(*condition).sleeping.permitCount() == 2 },
		"waited in vain for both to wait")
	gaveUp, cancel := context.WithCancel(k.ctx)
	cancel()
	if err := withSemaphore(k.ctx, c.(*condition).semaphore,
		func() error { return c.Wait(gaveUp) }); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled: %v", err)
	}
	if err := withSemaphore(k.ctx, c.(*condition).semaphore, func() error { return c.NotifyAll(k.ctx) }); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Recv(k.ctx); v != true || err != nil {
		t.Errorf("Python's wait: %v, %v", v, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	go func() { done <- withSemaphore(k.ctx, c.(*condition).semaphore, func() error { return c.Wait(k.ctx) }) }()
	testutil.Eventually(t, func() bool { return c.(*condition).sleeping.permitCount() == 1 },
		"waited in vain for the goroutine to wait")
	k.wantEval("notify(cond)", nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lostLock kills the holder of a lock. A process that wants the lock waits as long as it wishes to,
// and no longer.
func lostLock(t *testing.T, k *talk, b toolbox) {
	k.wantEval("lock.acquire()", true)
	k.p.Signal(syscall.SIGKILL)
	if err := k.p.Wait(k.ctx); err == nil {
		t.Error("a killed process ended well")
	}
	soon, cancel := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	go func() { done <- b.lock.Acquire(soon) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestConn_FormsCross sends and receives values that are more than a tensor, or less.
func TestConn_FormsCross(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		k := converse(t, py, Options{}, "file_descriptor")
		cell(t, "packed sequences", func(t *testing.T) { packedSequences(t, k) })
		cell(t, "tensors on a GPU", func(t *testing.T) { cudaForm(t, k) })
		k.bye()
	})
}

// packedSequences are of different lengths, sorted and not.
func packedSequences(t *testing.T, k *talk) {
	v := k.ask("packed")
	p, ok := v.(*pt.PackedSequence)
	if !ok || !reflect.DeepEqual(elements(p.BatchSizes), []float64{2, 2, 1}) ||
		!reflect.DeepEqual(elements(p.SortedIndices), []float64{1, 0}) {
		t.Fatalf("%T %+v", v, v)
	}
	p.Data.Fill(5)
	k.wantEval("[float(x) for x in kept.data]", []any{5.0, 5.0, 5.0, 5.0, 5.0})
	want := python.Tuple{"PackedSequence", []any{[]any{5.0, 5.0, 0.0}, []any{5.0, 5.0, 5.0}}, []any{int64(2), int64(3)}}
	if got := k.ask("unpack", p); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	sorted := &pt.PackedSequence{Data: pattern(k, tensor.Float32, 3), BatchSizes: tensor.FromSlice([]int64{2, 1}, 2)}
	want = python.Tuple{"PackedSequence", []any{[]any{0.0, 0.0}, []any{1.0, 0.0}}, []any{int64(2), int64(1)}}
	if got := k.ask("unpack", sorted); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if err := k.Send(k.ctx, python.Tuple{"unpack", &pt.PackedSequence{Data: sorted.Data}}); !errors.Is(err,
		ErrUnsupported) {
		t.Errorf("without batch sizes: %v", err)
	}
	CloseAll(python.Tuple{p, sorted})
}

// A connection in a queue is transferred, as by Conn.Send: it is closed here and works at the
// receiver.
func TestQueue_TransfersConnections(t *testing.T) {
	ctx := testContext(t)
	l := testutil.Value(net.Listen("unix", ""))(t)
	defer l.Close()
	for name, q := range map[string]Queue{
		"Queue": testutil.Value(NewQueue(2, Options{}))(t), "SimpleQueue": testutil.Value(NewSimpleQueue(Options{}))(t),
	} {
		far := testutil.Value(net.Dial("unix", l.Addr().String()))(t)
		near := testutil.Value(l.Accept())(t)
		testutil.NoError(t, q.Put(ctx, far))
		if _, err := far.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the sender's connection after Put: %v, want %v", name, err, net.ErrClosed)
		}
		v := testutil.Value(q.Get(ctx))(t)
		got, ok := v.(net.Conn)
		if !ok {
			t.Fatalf("%s: got %T, want a net.Conn", name, v)
		}
		if _, err := got.Write([]byte("abc")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		testutil.NoError(t, got.Close())
		if b, err := io.ReadAll(near); string(b) != "abc" || err != nil {
			t.Errorf("%s: received %q, %v", name, b, err)
		}
		testutil.NoError(t, near.Close(), q.Close())
	}
}
