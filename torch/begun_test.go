package torch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/test/testutil"
)

// briefly calls do with a context that ends soon.
func briefly(t *testing.T, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(testContext(t), 20*time.Millisecond)
	defer cancel()
	return do(ctx)
}

// TestQueue_GetEndsWithinAMessage reads a message whose bytes come slowly. A Get ends with its
// context wherever the message stands, and the next one has it.
func TestQueue_GetEndsWithinAMessage(t *testing.T) {
	q := testutil.Value(newPipeQueue(Options{}))(t)
	defer q.Close()
	want := bytes.Repeat([]byte("slow"), 1000)
	var frame bytes.Buffer
	if err := writeFrame(&frame, testutil.Value(pickle.Marshal(want, 4))(t)); err != nil {
		t.Fatal(err)
	}
	for _, parts := range [][]int{{2}, {4}, {100}, {1, 5, 2000}} {
		rest := frame.Bytes()
		at := 0
		for _, to := range parts {
			testutil.Value(q.writer.stream.Write(rest[at:to]))(t)
			at = to
			err := briefly(t, func(ctx context.Context) error { _, err := q.Get(ctx); return err })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d bytes: %v", to, err)
			}
		}
		if q.readLock.permitCount() != 0 {
			t.Errorf("another process may read from byte %d on", at)
		}
		testutil.Value(q.writer.stream.Write(rest[at:]))(t)
		got, err := As[[]byte](q.Get(testContext(t)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("in parts %v: %d bytes, %v", parts, len(got), err)
		}
		if q.readLock.permitCount() != 1 {
			t.Error("the lock of the readers stays taken")
		}
	}
}

// TestQueue_PutEndsWithinAMessage puts a message that is larger than the pipe. When it has begun,
// its rest follows, also if the queue's end is closed.
func TestQueue_PutEndsWithinAMessage(t *testing.T) {
	q := testutil.Value(newPipeQueue(Options{}))(t)
	defer q.Close()
	want := bytes.Repeat([]byte("large"), 100_000)
	put := func(ctx context.Context) error { return q.Put(ctx, want) }
	for range 2 {
		if err := briefly(t, put); err != nil {
			t.Fatalf("a message that has begun: %v", err)
		}
		if q.writeLock.permitCount() != 0 {
			t.Error("another process may write into the message")
		}
		if err := briefly(t, put); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the next one, before it has begun: %v", err)
		}
		if err := briefly(t, Drain); !errors.Is(err, ErrUnfetched) {
			t.Errorf("a program may end: %v", err)
		}
		got, err := As[[]byte](q.Get(testContext(t)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if err := Drain(testContext(t)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(briefly(t, put), q.writer.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := As[[]byte](q.Get(testContext(t))); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after Close: %d bytes, %v", len(got), err)
	}
	if _, err := q.Get(testContext(t)); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v", err)
	}
}

// TestQueue_PutIntoAFullPipe puts until the pipe is full. The queue works on when there is room.
func TestQueue_PutIntoAFullPipe(t *testing.T) {
	for name, q := range map[string]Queue{
		"Queue":       testutil.Value(NewQueue(0, Options{}))(t),
		"SimpleQueue": testutil.Value(NewSimpleQueue(Options{}))(t)} {
		defer q.Close()
		n := 0
		put := func(ctx context.Context) error { return q.Put(ctx, bytes.Repeat([]byte{1}, 4000)) }
		err := briefly(t, put)
		for ; err == nil; err = briefly(t, put) {
			n++
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s: message %d: %v", name, n, err)
		}
		if have, err := q.Len(t.Context()); name == "Queue" && (have != n || err != nil) {
			t.Errorf("%s: %d messages of %d, %v", name, have, n, err)
		}
		for i := range n {
			if _, err := q.Get(testContext(t)); err != nil {
				t.Fatalf("%s: message %d of %d: %v", name, i, n, err)
			}
		}
		if err := q.Put(testContext(t), 1); err != nil {
			t.Errorf("%s: with room again: %v", name, err)
		}
	}
}

// TestSemaphore_AcquireEndsInTime waits for a lock that another process holds.
func TestSemaphore_AcquireEndsInTime(t *testing.T) {
	s := testutil.Value(newSemaphore(lockClass, 0, 1))(t)
	defer s.Close()
	best := time.Hour
	for range 5 {
		begin := time.Now()
		if err := briefly(t, s.Acquire); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		best = min(best, time.Since(begin))
	}
	if best >= napAtMost {
		t.Errorf("a wait of 20 ms takes %v", best)
	}
}
