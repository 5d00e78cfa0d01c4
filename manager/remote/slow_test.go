package remote_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/manager/remote"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A valve is between clients and a listener. While it is shut, what clients say stays where it is.
type valve struct {
	net.Listener
	to string

	mu   sync.Mutex // held while it is shut
	done sync.WaitGroup
}

func newValve(t testing.TB, to string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	v := &valve{Listener: l, to: to}
	v.done.Go(v.run)
	t.Cleanup(func() { l.Close(); v.done.Wait() })
	return v
}

func (v *valve) run() {
	for {
		from, err := v.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", v.to)
		if err != nil {
			from.Close()
			return
		}
		v.done.Go(func() { io.Copy(from, to); from.Close() })
		v.done.Go(func() { v.pass(to, from); to.Close() })
	}
}

func (v *valve) pass(to, from net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		v.mu.Lock()
		to.Write(b[:n])
		v.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// A call that ends with its context in the middle of its request ends its own connection, and not
// the manager.
func TestCall_ThatEndsInItsRequestEndsNoOther(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	v := newValve(t, l.Addr().String())
	m, err := remote.Dial(ctx, v.Addr().String(), remote.Options{Key: key})
	testutil.NoError(t, err)
	defer func() { testutil.NoError(t, m.Close()) }()
	list, err := manager.NewList(ctx, m, []byte(nil))
	testutil.NoError(t, err)
	defer list.Close()
	v.mu.Lock()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = list.Set(short, 0, make([]byte, 32<<20))
	v.mu.Unlock()
	testutil.ErrorIs(t, err, context.DeadlineExceeded)
	for range 3 {
		testutil.NoError(t, list.Set(ctx, 0, []byte("small")))
	}
}

// Of two calls of a transaction the second waits for the first, but no longer than its context
// lasts.
func TestTxn_ACallWaitsForAnotherAsLongAsItsContext(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	v := newValve(t, l.Addr().String())
	m, err := remote.Dial(ctx, v.Addr().String(), remote.Options{Key: key})
	testutil.NoError(t, err)
	defer func() { testutil.NoError(t, m.Close()) }()
	n, err := manager.NewValue(ctx, m, 1)
	testutil.NoError(t, err)
	defer n.Close()
	testutil.NoError(t, m.Txn(ctx, func(tx context.Context) error {
		v.mu.Lock()
		first := make(chan error, 1)
		go func() { first <- n.Set(tx, 2) }()
		time.Sleep(50 * time.Millisecond)
		short, cancel := context.WithTimeout(tx, 50*time.Millisecond)
		defer cancel()
		second := make(chan error, 1)
		go func() { _, err := n.Get(short); second <- err }()
		select {
		case err := <-second:
			testutil.ErrorIs(t, err, context.DeadlineExceeded)
		case <-time.After(10 * time.Second):
			t.Error("it waits on")
		}
		v.mu.Unlock()
		return <-first
	}))
	if got, err := n.Get(ctx); got != 2 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}
