package pool

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func queuedIDs(t *testing.T, q *localQueue[call, *call], max int) (ids []uint64) {
	t.Helper()
	calls := make([]call, max)
	n, err := q.GetN(testutil.Context(t), calls)
	testutil.NoError(t, err)
	for _, c := range calls[:n] {
		ids = append(ids, c.id)
	}
	return ids
}

func TestLocalQueue_KeepsTheOrder(t *testing.T) {
	ctx := testutil.Context(t)
	q := newLocalQueue[call]()
	var want, got []uint64
	id := uint64(0)
	for round := range 50 { // rounds of several lengths move the values within the queue's memory
		for range round%7 + 1 {
			id++
			want = append(want, id)
			testutil.NoError(t, q.Put(ctx, call{id: id}))
		}
		got = append(got, queuedIDs(t, q, round%5+1)...)
	}
	for q.Len() > 0 {
		got = append(got, queuedIDs(t, q, 3)...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := q.TryGet(); !errors.Is(err, ipc.ErrEmpty) {
		t.Errorf("TryGet of an empty queue: %v", err)
	}
}

func TestLocalQueue_BlockedGetEnds(t *testing.T) {
	for name, end := range map[string]func(q *localQueue[call, *call], cancel func()){
		"value":  func(q *localQueue[call, *call], _ func()) { q.Put(context.Background(), call{id: 1}) },
		"finish": func(q *localQueue[call, *call], _ func()) { q.Finish() },
		"close":  func(q *localQueue[call, *call], _ func()) { q.Close() },
		"cancel": func(_ *localQueue[call, *call], cancel func()) { cancel() },
	} {
		q := newLocalQueue[call]()
		ctx, cancel := context.WithCancel(testutil.Context(t))
		var c call
		var err error
		var got sync.WaitGroup
		got.Go(func() { c, err = q.Get(ctx) })
		end(q, cancel)
		got.Wait()
		cancel()
		want := map[string]error{"finish": ipc.ErrClosed, "close": ipc.ErrClosed, "cancel": context.Canceled}[name]
		if !errors.Is(err, want) || want == nil && c.id != 1 {
			t.Errorf("%s: got %+v, %v, want %v", name, c, err, want)
		}
	}
}

func TestLocalQueue_RefusesPutsAtItsEnd(t *testing.T) {
	ctx := testutil.Context(t)
	q := newLocalQueue[call]()
	testutil.NoError(t, q.Put(ctx, call{id: 1}))
	testutil.NoError(t, q.Finish())
	if n, err := q.PutN(ctx, []call{{id: 2}}); n != 0 || !errors.Is(err, ipc.ErrClosed) {
		t.Errorf("PutN after Finish: %d, %v", n, err)
	}
	if ids := queuedIDs(t, q, 2); !slices.Equal(ids, []uint64{1}) {
		t.Errorf("after Finish the queue had %v, want 1", ids)
	}
	testutil.NoError(t, q.Close())
	if err := q.Put(ctx, call{id: 3}); !errors.Is(err, ipc.ErrClosed) {
		t.Errorf("Put after Close: %v", err)
	}
}

// An error of a worker on a goroutine arrives as one of another process does.
func TestReply_OwnSendsTheError(t *testing.T) {
	r := reply{err: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}}
	sent := r.err
	testutil.NoError(t, r.own())
	if r.err == sent || !errors.Is(r.err, fs.ErrNotExist) || r.err.Error() != sent.Error() {
		t.Errorf("got %#v, want a copy of %#v", r.err, sent)
	}
}
