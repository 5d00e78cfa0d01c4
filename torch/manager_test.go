package torch

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// managed starts a Python manager, and returns its client here and a talk with its client there.
func managed(t *testing.T, py peerPython, network string) (*Manager, *talk) {
	t.Helper()
	ctx := testContext(t)
	var addr any = filepath.Join(t.TempDir(), "manager")
	if network == "tcp" {
		addr = python.Tuple{"127.0.0.1", 0}
	}
	p := testutil.Value(Python{Path: py.path, Dir: "testdata", Env: pythonEnv()}.Spawn(ctx, "managed:run", addr))(t)
	t.Cleanup(func() { p.Close() })
	at := testutil.Value((&importer{}).decodeToken(newInstance(tokenClass,
		python.Tuple{"", testutil.Value(p.Conn.Recv(ctx))(t), ""})))(t)
	m := testutil.Value(DialManager(ctx, at.network, at.addr, Options{AuthKey: processKey()}))(t)
	k := &talk{t, ctx, p, p.Conn}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		k.bye() // the server ends with the process that has started it
	})
	return m, k
}

// tell evaluates an expression in the Python client.
func (k *talk) tell(what any) any {
	k.t.Helper()
	if err := k.Send(k.ctx, what); err != nil {
		k.t.Fatal(err)
	}
	return testutil.Value(k.Recv(k.ctx))(k.t)
}

func (k *talk) wantTold(code string, want any) {
	k.t.Helper()
	if got := k.tell(code); !reflect.DeepEqual(got, want) {
		k.t.Errorf("%s is %v, not %v", code, got, want)
	}
}

// TestManager_ObjectsAreSharedWithPython uses the objects of a Python SyncManager from Go and from
// Python.
func TestManager_ObjectsAreSharedWithPython(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		m, k := managed(t, py, "unix")
		for name, test := range map[string]func(*testing.T, *Manager, *talk){
			"dict and list": managedContainers, "queue": managedQueue, "event and locks": managedLocks,
			"condition":                  managedCondition,
			"namespace, value and array": managedValues, "registered": managedRegistered,
			"references": managedReferences,
		} {
			cell(t, name, func(t *testing.T) { test(t, m, k) })
		}
	})
}

// give makes a proxy of Go's a name of the Python client's.
func give(k *talk, name string, p any) {
	k.t.Helper()
	k.tell(python.Tuple{name, p})
}

func managedContainers(t *testing.T, m *Manager, k *talk) {
	d := testutil.Value(m.Dict(k.ctx))(t)
	give(k, "d", d)
	if err := d.Set(k.ctx, "a", 1); err != nil {
		t.Fatal(err)
	}
	k.wantTold("[d['a'], d.update(b=[2]), len(d)]", []any{int64(1), nil, int64(2)})
	if v, ok, err := d.Get(k.ctx, "b"); !ok || err != nil || !reflect.DeepEqual(v, []any{int64(2)}) {
		t.Errorf("b is %v, %v, %v", v, ok, err)
	}
	if v, ok, err := d.Get(k.ctx, "c"); ok || err != nil {
		t.Errorf("what is not there is %v, %v", v, err)
	}
	gone, err1 := d.Delete(k.ctx, "a")
	again, err2 := d.Delete(k.ctx, "a")
	if !gone || again || err1 != nil || err2 != nil {
		t.Errorf("deleted %v, %v, %v, %v", gone, again, err1, err2)
	}
	if all, err := d.All(k.ctx); err != nil || all.Len() != 1 {
		t.Errorf("%v, %v", all, err)
	}
	l := testutil.Value(m.List(k.ctx, "x", 2.5))(t)
	give(k, "l", l)
	if err := errors.Join(l.Append(k.ctx, d), l.Set(k.ctx, 0, "y")); err != nil { // a proxy in a list
		t.Fatal(err)
	}
	k.wantTold("[l[0], l[1], l[2]['b'], len(l)]", []any{"y", 2.5, []any{int64(2)}, int64(3)})
	inner, ok, err := l.Get(k.ctx, 2)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if n, err := testutil.Value(As[Container](inner, nil))(t).Len(k.ctx); n != 1 || err != nil {
		t.Errorf("the dict in the list has %d keys, %v", n, err)
	}
	CloseAll(inner)
	if v, ok, err := l.Get(k.ctx, 9); ok || err != nil {
		t.Errorf("beyond the end: %v, %v", v, err)
	}
	var remote *RemoteError
	if err := l.Set(k.ctx, 9, 1); !errors.As(err, &remote) || remote.Class != "builtins.IndexError" ||
		!strings.Contains(err.Error(), "IndexError: list assignment index out of range") {
		t.Errorf("set beyond the end: %v", err)
	}
}

func managedQueue(t *testing.T, m *Manager, k *talk) {
	q := testutil.Value(m.Queue(k.ctx, 1))(t)
	give(k, "q", q)
	if err := q.Put(k.ctx, python.Tuple{1, "x"}); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithCancel(k.ctx)
	cancel()
	if err := q.Put(soon, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("put into a full queue: %v", err)
	}
	k.wantTold("q.get()", python.Tuple{int64(1), "x"})
	done := make(chan any, 1)
	go func() {
		v, err := q.Get(k.ctx) // may wait for some slices
		if err != nil {
			v = err
		}
		done <- v
	}()
	k.wantTold("q.put([3.0])", nil)
	if got := <-done; !reflect.DeepEqual(got, []any{3.0}) {
		t.Errorf("got %v", got)
	}
	if n, err := q.Len(k.ctx); n != 0 || err != nil {
		t.Errorf("%d items are left, %v", n, err)
	}
}

// TestManager_QueuesCarryTensors sends tensors through the queue of a manager, both ways.
func TestManager_QueuesCarryTensors(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		m, k := managed(t, py, "unix")
		q := testutil.Value(m.Queue(k.ctx, 1))(t)
		give(k, "q", q)
		x := pattern(k, tensor.Float32, 4)
		defer x.Close()
		if err := q.Put(k.ctx, x); err != nil {
			t.Fatal(err)
		}
		k.wantTold("q.get().add_(1).tolist()", []any{1.0, 2.0, 1.0, 2.0})
		if got := elements(x); !reflect.DeepEqual(got, []float64{1, 2, 1, 2}) {
			t.Errorf("through a manager it is other memory: %v", got)
		}
		k.wantTold("q.put(full((2,), 3.0))", nil)
		v := testutil.Value(q.Get(k.ctx))(t)
		defer CloseAll(v)
		if got, ok := v.(*tensor.Tensor); !ok || !reflect.DeepEqual(elements(got), []float64{3, 3}) {
			t.Errorf("got %v", v)
		}
	})
}

func managedLocks(t *testing.T, m *Manager, k *talk) {
	e, l, s := testutil.Value(m.Event(k.ctx))(t), testutil.Value(m.Lock(k.ctx))(t),
		testutil.Value(m.Semaphore(k.ctx, 2))(t)
	give(k, "e", e)
	give(k, "l", l)
	done := make(chan error, 1)
	go func() { done <- e.Wait(k.ctx) }()
	k.wantTold("e.set()", nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	set, err1 := e.IsSet(k.ctx)
	err2 := e.Clear(k.ctx)
	if !set || err1 != nil || err2 != nil {
		t.Error(set, err1, err2)
	}
	k.wantTold("e.is_set()", false)
	if err := errors.Join(e.Set(k.ctx), l.Acquire(k.ctx), s.Acquire(k.ctx), s.Acquire(k.ctx)); err != nil {
		t.Fatal(err)
	}
	k.wantTold("(e.wait(0), l.acquire(False))", python.Tuple{true, false})
	soon, cancel := context.WithCancel(k.ctx)
	cancel()
	if err := s.Acquire(soon); !errors.Is(err, context.Canceled) {
		t.Errorf("a semaphore that has none: %v", err)
	}
	if _, err := s.Permits(); err == nil {
		t.Error("a SyncManager tells the permits of a Semaphore")
	}
	if err := l.TryAcquire(); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock that is taken: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	k.wantTold("l.acquire()", true)
}

func managedCondition(t *testing.T, m *Manager, k *talk) {
	r := testutil.Value(m.Create(k.ctx, "RLock"))(t)
	one, two := testutil.Value(As[Semaphore](r.Thread(k.ctx)))(t), testutil.Value(As[Semaphore](r.Thread(k.ctx)))(t)
	defer one.Close()
	defer two.Close()
	if err := errors.Join(one.Acquire(k.ctx), one.Acquire(k.ctx), one.Release()); err != nil {
		t.Fatal(err)
	}
	if err := two.TryAcquire(); !errors.Is(err, ErrLocked) {
		t.Errorf("an RLock of another thread's: %v", err)
	}
	var remote *RemoteError
	if err := two.Release(); !errors.As(err, &remote) || remote.Class != "builtins.RuntimeError" {
		t.Errorf("released by another thread: %v", err)
	}
	if err := errors.Join(one.Release(), two.Acquire(k.ctx), two.Release()); err != nil {
		t.Error(err)
	}

	c := testutil.Value(m.Create(k.ctx, "Condition"))(t)
	give(k, "c", c)
	mine := testutil.Value(As[Cond](c.Thread(k.ctx)))(t)
	defer mine.Close()
	l := testutil.Value(m.List(k.ctx))(t)
	give(k, "waited_for", l)
	done := make(chan error, 1)
	go func() {
		err := mine.Acquire(k.ctx)
		for n := 0; n == 0 && err == nil; {
			if n, err = l.Len(k.ctx); n == 0 && err == nil {
				err = mine.Wait(k.ctx)
			}
		}
		done <- errors.Join(err, mine.Notify(k.ctx, 1), mine.Release())
	}()
	k.wantTold("(c.acquire(), waited_for.append(1), c.notify_all(), c.release())", python.Tuple{true, nil, nil, nil})
	if err := <-done; err != nil {
		t.Error(err)
	}
	soon, cancel := context.WithCancel(k.ctx)
	cancel()
	if err := mine.Wait(soon); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled: %v", err)
	}
}

func managedValues(t *testing.T, m *Manager, k *talk) {
	n, v, a := testutil.Value(m.Namespace(k.ctx))(t), testutil.Value(m.Value(k.ctx, "d", 1.5))(t),
		testutil.Value(m.Array(k.ctx, "i", 1, 2, 3))(t)
	give(k, "n", n)
	give(k, "v", v)
	give(k, "a", a)
	if err := errors.Join(n.Set(k.ctx, "x", "y"), v.callMethod(k.ctx, "set", 2.5), a.Set(k.ctx, 1, 7)); err != nil {
		t.Fatal(err)
	}
	k.wantTold("(n.x, v.get(), a[1], len(a))", python.Tuple{"y", 2.5, int64(7), int64(3)})
	x, _, err1 := n.Get(k.ctx, "x")
	y, err2 := As[float64](v.Call(k.ctx, "get"))
	z, _, err3 := a.Get(k.ctx, 2)
	if x != "y" || y != 2.5 || z != int64(3) || errors.Join(err1, err2, err3) != nil {
		t.Error(x, y, z, err1, err2, err3)
	}
	was, err1 := n.Delete(k.ctx, "x")
	_, ok, err2 := n.Get(k.ctx, "x")
	if !was || ok || errors.Join(err1, err2) != nil {
		t.Errorf("an attribute that is not there: %v, %v, %v, %v", was, ok, err1, err2)
	}
	var remote *RemoteError
	if _, err := n.Len(k.ctx); !errors.As(err, &remote) {
		t.Errorf("the length of a Namespace: %v", err)
	}
}

func managedRegistered(t *testing.T, m *Manager, k *talk) {
	c := testutil.Value(m.Create(k.ctx, "Counter", Keywords{"n": 5}))(t)
	if methods := slices.Compact(slices.Sorted(slices.Values(c.exposed))); !slices.Equal(methods,
		[]string{"add", "another", "fail", "is_same", "unspeakable"}) {
		t.Errorf("a Counter has the methods %v", methods)
	}
	if n, err := As[int](c.Call(k.ctx, "add", Keywords{"k": 2})); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	var remote *RemoteError
	if _, err := c.Call(k.ctx, "fail", "what", 3, nil); !errors.As(err, &remote) ||
		remote.Class != "builtins.LookupError" ||
		!reflect.DeepEqual(remote.Args, python.Tuple{"what", int64(3), nil}) {
		t.Errorf("%#v", err)
	}
	if _, err := c.Call(k.ctx, "unspeakable"); !errors.As(err, &remote) ||
		!strings.Contains(remote.Traceback, "lambda") {
		t.Errorf("what has no pickle: %v", err)
	}
	if _, err := c.Call(k.ctx, "_private"); !errors.As(err, &remote) || !strings.Contains(err.Error(), "_private") {
		t.Errorf("what is not exposed: %v", err)
	}
	if _, err := m.Create(k.ctx, "Nobody"); !errors.As(err, &remote) || !strings.Contains(err.Error(), "KeyError") {
		t.Errorf("what is not registered: %v", err)
	}
	if n, err := As[int](c.Call(k.ctx, "add")); n != 8 || err != nil {
		t.Errorf("after all that: %d, %v", n, err)
	}
	v := testutil.Value(c.Call(k.ctx, "another"))(t)
	if n, err := As[int](v.(*Proxy).Call(k.ctx, "add")); n != 10 || err != nil {
		t.Errorf("a proxy that a method returned: %d, %v", n, err)
	}
	// Python 3.8 takes no proxy of a class of the user's at its own server: its AutoProxy lacks the
	// argument.
	if same, err := As[bool](c.Call(k.ctx, "is_same", v, 10)); !same &&
		k.tell("'manager_owned' in AutoProxy.__code__.co_varnames") == true {
		t.Errorf("a proxy as an argument: %v, %v", same, err)
	}
	w := testutil.Value(m.Create(k.ctx, "get_work"))(t)
	k.wantTold("m.get_work().put('to Go')", nil)
	if v, err := testutil.Value(As[Queue](w, nil))(t).Get(k.ctx); v != "to Go" || err != nil {
		t.Errorf("from a registered queue: %v, %v", v, err)
	}
	if _, err := DialManager(k.ctx, m.network, m.addr, Options{AuthKey: []byte("wrong")}); !errors.Is(err, ErrAuth) {
		t.Errorf("with another key: %v", err)
	}
}

// managedReferences counts the objects at the server while proxies of one go to and fro.
func managedReferences(t *testing.T, m *Manager, k *talk) {
	objects := func() int { return testutil.Value(As[int](m.callOnce(k.ctx, "number_of_objects")))(t) }
	before := objects()
	c := testutil.Value(m.Create(k.ctx, "Counter"))(t)
	give(k, "c", c)
	theirs := k.tell("c").(*Proxy) // a client of its own manager
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n, err := As[int](theirs.Call(k.ctx, "add")); n != 1 || err != nil {
		t.Errorf("a proxy that came from Python: %d, %v", n, err)
	}
	give(k, "c", nil)
	if got := objects(); got != before+1 {
		t.Errorf("%d objects became %d while a proxy is left", before, got)
	}
	if err := errors.Join(theirs.Close(), theirs.Close()); err != nil {
		t.Error(err)
	}
	if got := objects(); got != before {
		t.Errorf("%d objects became %d in the end", before, got)
	}
	var remote *RemoteError
	if _, err := theirs.Call(k.ctx, "add"); !errors.As(err, &remote) {
		t.Errorf("an object that is gone: %v", err)
	}
}

// TestManager_SaysThatItsServerHasEnded meets a server that ends, over TCP.
func TestManager_SaysThatItsServerHasEnded(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		m, k := managed(t, py, "tcp")
		q := testutil.Value(m.Queue(k.ctx, 0))(t)
		give(k, "q", q)
		k.wantTold("q.put(1)", nil)
		type got struct {
			item any
			err  error
		}
		done := make(chan [2]got, 1)
		go func() {
			var two [2]got
			for i := range two {
				two[i].item, two[i].err = q.Get(k.ctx)
			}
			done <- two
		}()
		give(k, "q", nil)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Shutdown(k.ctx); err != nil {
			t.Error(err)
		}
		if two := <-done; two[1].err == nil {
			t.Errorf("a server that has ended gave %v", two)
		}
		if _, err := m.Dict(k.ctx); err == nil {
			t.Error("a server that has ended made a dict")
		}
	})
}
