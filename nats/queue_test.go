package nats_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
	"github.com/shoal-mp/shoal/wire"
)

// roundTrip puts a value and gets it.
func roundTrip[T any](t *testing.T, c *nats.Conn, name string, v T) {
	t.Helper()
	ctx := testutil.Context(t)
	q := open[T](t, c, name, nats.QueueOptions{})
	testutil.NoError(t, q.Put(ctx, v))
	got, err := q.Get(ctx)
	testutil.NoError(t, err)
	if !reflect.DeepEqual(got, v) {
		t.Errorf("%v, want %v", got, v)
	}
}

type job struct {
	Name  string
	Parts []int
	When  time.Time
	By    map[string]float64
	Next  *job
}

func TestQueue_CarriesWhatIPCCarries(t *testing.T) {
	c := local(t)
	roundTrip(t, c, "int", -7)
	roundTrip(t, c, "string", "text")
	roundTrip(t, c, "empty", "")
	roundTrip(t, c, "bytes", []byte{0, 1, 255})
	roundTrip(t, c, "any", any("in an any"))
	roundTrip(t, c, "struct",
		job{"a", []int{1, 2}, time.Unix(5, 0).UTC(), map[string]float64{"x": 1.5}, &job{Name: "b"}})
	roundTrip(t, c, "nil", (*job)(nil))
	roundTrip(t, c, "long", string(slices.Repeat([]byte("shoal "), 1<<20))) // in chunks, though it has no tensor
}

type batch struct {
	Inputs, Labels *tensor.Tensor
	Step           int
}

func TestQueue_TensorsAreCopied(t *testing.T) {
	noBlocks(t)
	ctx := testutil.Context(t)
	q := open[batch](t, local(t), "batches", nats.QueueOptions{})
	g := tensor.NewGenerator(1)
	whole := tensor.RandN(tensor.Float32, g, 40, 30)
	defer whole.Close()
	for name, x := range map[string]*tensor.Tensor{
		"whole": whole, "transposed": whole.T(), "a narrow part": whole.Narrow(0, 20, 1),
		"a column": whole.Narrow(1, 3, 1),
		"expanded": whole.Narrow(0, 0, 1).Expand(1000, 30), "of no elements": tensor.New(tensor.Float64, 3, 0),
		"a number": tensor.Full(tensor.Int64, 7), "half": whole.To(tensor.BFloat16),
	} {
		t.Run(name, func(t *testing.T) {
			testutil.NoError(t, q.Put(ctx, batch{x, whole, 3}))
			got, err := q.Get(ctx)
			testutil.NoError(t, err)
			same(t, got.Inputs, x)
			same(t, got.Labels, whole)
			if got.Step != 3 {
				t.Error(got.Step)
			}
			testutil.NoError(t, errors.Join(got.Inputs.Close(), got.Labels.Close()))
		})
		if x != whole {
			defer x.Close()
		}
	}
}

// A value that is larger than a message goes in chunks, and the chunks go with it.
func TestQueue_LargeTensors(t *testing.T) {
	noBlocks(t)
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 1 << 20})
	q := open[[]*tensor.Tensor](t, connect(t, b.URL()), "large", nats.QueueOptions{})
	var put []*tensor.Tensor
	for _, n := range []int{1 << 20, 24<<20 + 13, 3, 0, 5 << 20} {
		x, err := tensor.NewShared(tensor.Uint8, n)
		testutil.NoError(t, err)
		defer x.Close()
		data := tensor.Data[uint8](x)
		for i := 0; i < n; i += 997 {
			data[i] = byte(i / 997)
		}
		put = append(put, x)
	}
	for range 2 {
		testutil.NoError(t, q.Put(ctx, put))
	}
	d, err := q.Next(ctx)
	testutil.NoError(t, err)
	for i, x := range put {
		same(t, d.Value[i], x)
		testutil.NoError(t, d.Value[i].Close())
	}
	testutil.NoError(t, d.Ack(ctx))
	got, err := q.Get(ctx)
	testutil.NoError(t, err)
	same(t, got[1], put[1])
	for _, x := range got {
		testutil.NoError(t, x.Close())
	}
	if s := count(t, q); s != (nats.QueueStats{}) {
		t.Errorf("the broker keeps %+v", s)
	}
}

func TestQueue_IsInOrderAndKnowsItsLength(t *testing.T) {
	ctx := testutil.Context(t)
	q := open[int](t, local(t), "numbers", nats.QueueOptions{})
	for i := range 10 {
		testutil.NoError(t, q.Put(ctx, i))
	}
	more := make([]int, 2990)
	for i := range more {
		more[i] = 10 + i
	}
	if n, err := q.PutN(ctx, more); n != len(more) || err != nil {
		t.Fatalf("%d of %d, %v", n, len(more), err)
	}
	if n, err := q.Len(ctx); n != 3000 || err != nil {
		t.Errorf("length %d, %v", n, err)
	}
	vs, next := make([]int, 700), 0
	for next < 3000 {
		n, err := q.GetN(ctx, vs)
		testutil.NoError(t, err)
		for _, v := range vs[:n] {
			if v != next {
				t.Fatalf("%d after %d: %v", v, next-1, vs[:n])
			}
			next++
		}
	}
	_, err := q.TryGet(ctx)
	testutil.ErrorIs(t, err, nats.ErrEmpty, ipc.ErrEmpty)
	if s := count(t, q); s != (nats.QueueStats{}) {
		t.Errorf("the broker keeps %+v", s)
	}
}

func TestQueue_WaitsAsTheContextSays(t *testing.T) {
	ctx := testutil.Context(t)
	q := open[int](t, local(t), "waits", nats.QueueOptions{Capacity: 2})
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	_, err := q.Get(short)
	testutil.ErrorIs(t, err, nats.ErrEmpty, context.DeadlineExceeded)
	gone, stop := context.WithCancelCause(ctx)
	stop(errors.New("enough"))
	_, err = q.Get(gone)
	testutil.ErrorIs(t, err, context.Canceled)
	testutil.ErrorContains(t, err, "enough")
	testutil.ErrorIs(t, q.Put(gone, 1), context.Canceled)

	testutil.NoError(t, q.Put(ctx, 1))
	testutil.NoError(t, q.Put(ctx, 2))
	testutil.ErrorIs(t, q.TryPut(ctx, 3), nats.ErrFull, ipc.ErrFull)
	short, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	testutil.ErrorIs(t, q.Put(short, 3), nats.ErrFull, context.DeadlineExceeded)
	put := make(chan error, 1)
	go func() { put <- q.Put(ctx, 3) }() // it waits for room
	for want := 1; want <= 3; want++ {
		got, err := q.Get(ctx) // the third one waits for the put
		testutil.NoError(t, err)
		if got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	testutil.NoError(t, <-put)
	got := make(chan int, 1)
	go func() {
		v, err := q.Get(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- v
	}()
	time.Sleep(20 * time.Millisecond) // most often it waits by now
	testutil.NoError(t, q.Put(ctx, 4))
	if v := <-got; v != 4 {
		t.Error(v)
	}
}

// A get that was given up brings no value to nobody: the next one gets it at once.
func TestQueue_GetsThatGiveUpLoseNothing(t *testing.T) {
	ctx := testutil.Context(t)
	q := open[int](t, local(t), "impatient", nats.QueueOptions{MaxDeliveries: 1000})
	const values = 200
	put := make(chan error, 1)
	go func() {
		for i := range values {
			if err := q.Put(ctx, i); err != nil {
				put <- err
				return
			}
		}
		put <- nil
	}()
	seen := make(map[int]int)
	for n := 0; len(seen) < values; n++ {
		short, cancel := context.WithTimeout(ctx, time.Duration(n%40)*100*time.Microsecond)
		if n%3 == 0 {
			time.AfterFunc(time.Millisecond, cancel)
		}
		d, err := q.Next(short)
		cancel()
		switch {
		case err == nil:
			testutil.NoError(t, d.Ack(ctx))
			seen[d.Value]++
		case ctx.Err() != nil:
			t.Fatalf("%d of %d values, %v", len(seen), values, err)
		}
	}
	testutil.NoError(t, <-put)
	for v, n := range seen {
		if n != 1 {
			t.Errorf("%d came %d times", v, n)
		}
	}
}

func TestDelivery_ComesBackUnlessAcknowledged(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	q := open[string](t, c, "comes-back", nats.QueueOptions{})
	testutil.NoError(t, q.Put(ctx, "a"))
	d, err := q.Next(ctx)
	testutil.NoError(t, err)
	if d.Value != "a" || d.Attempt != 1 || time.Since(d.Time) > time.Minute {
		t.Errorf("%+v", d)
	}
	if s := count(t, q); s.Taken != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	testutil.NoError(t, d.Nak(0))
	testutil.ErrorIs(t, d.Ack(ctx), nats.ErrClosed)
	d, err = q.Next(ctx)
	testutil.NoError(t, err)
	if d.Value != "a" || d.Attempt != 2 {
		t.Errorf("%+v", d)
	}

	// Closing the queue gives it to another one.
	other := open[string](t, c, "comes-back", nats.QueueOptions{})
	testutil.NoError(t, q.Close())
	if d, err = other.Next(ctx); err != nil || d.Attempt != 3 {
		t.Fatalf("%+v, %v", d, err)
	}
	_, err = q.Get(ctx)
	testutil.ErrorIs(t, err, nats.ErrClosed, os.ErrClosed)

	// Forgetting it does as well.
	d = nil
	testutil.Eventually(t, func() bool {
		runtime.GC()
		d, err := other.Next(contextOf(t, 20*time.Millisecond))
		if err != nil {
			return false
		}
		if d.Attempt != 4 {
			t.Errorf("attempt %d", d.Attempt)
		}
		testutil.NoError(t, d.Ack(ctx))
		return true
	}, "a forgotten delivery does not come back")
	if s := count(t, other); s != (nats.QueueStats{}) {
		t.Errorf("the broker keeps %+v", s)
	}
}

func contextOf(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A receiver may take longer than AckWait as long as its process lives.
func TestDelivery_IsHeldWhileTheProcessLives(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	q := open[int](t, c, "slow", nats.QueueOptions{AckWait: 400 * time.Millisecond})
	other := open[int](t, c, "slow", nats.QueueOptions{})
	testutil.NoError(t, q.Put(ctx, 1))
	d, err := q.Next(ctx)
	testutil.NoError(t, err)
	_, err = other.Next(contextOf(t, 2*time.Second))
	testutil.ErrorIs(t, err, nats.ErrEmpty)
	testutil.NoError(t, d.Ack(ctx))
}

func TestQueue_PutOnce(t *testing.T) {
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 64 << 10})
	q := open[[]byte](t, connect(t, b.URL()), "once", nats.QueueOptions{})
	for _, v := range [][]byte{{1}, make([]byte, 200<<10)} {
		id := string(rune('a' + len(v)%2))
		for i, want := range []bool{true, false, false} {
			if fresh, err := q.PutOnce(ctx, id, v); fresh != want || err != nil {
				t.Errorf("%d bytes, time %d: %v, %v", len(v), i, fresh, err)
			}
		}
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		if len(got) != len(v) {
			t.Errorf("%d bytes", len(got))
		}
	}
	_, err := q.PutOnce(ctx, "", nil)
	testutil.ErrorIs(t, err, nats.ErrOptions)
	if s := count(t, q); s != (nats.QueueStats{}) {
		t.Errorf("the broker keeps %+v", s)
	}
}

func TestQueue_Finish(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	q := open[int](t, c, "ends", nats.QueueOptions{})
	other := open[int](t, c, "ends", nats.QueueOptions{})
	waits := make(chan error, 1)
	sum := 0
	go func() {
		for v, err := range other.All(ctx) {
			if err != nil {
				waits <- err
				return
			}
			sum += v
		}
		waits <- nil
	}()
	for i := range 5 {
		testutil.NoError(t, q.Put(ctx, i))
	}
	testutil.NoError(t, q.Finish(ctx))
	testutil.NoError(t, <-waits)
	if sum != 10 {
		t.Errorf("%d", sum)
	}
	testutil.ErrorIs(t, q.Put(ctx, 1), nats.ErrClosed)
	testutil.ErrorIs(t, other.TryPut(ctx, 1), nats.ErrClosed)
	_, err := q.TryGet(ctx)
	testutil.ErrorIs(t, err, nats.ErrClosed)
	late := open[int](t, c, "ends", nats.QueueOptions{}) // it stays finished
	_, err = late.Get(ctx)
	testutil.ErrorIs(t, err, nats.ErrClosed)
	testutil.NoError(t, c.DeleteQueue(ctx, "ends"))
	testutil.NoError(t, c.DeleteQueue(ctx, "ends"))
	again := open[int](t, c, "ends", nats.QueueOptions{})
	testutil.NoError(t, again.Put(ctx, 1))
}

// A loop that is left gives the value back.
func TestQueue_AllAcknowledgesWhatTheLoopIsDoneWith(t *testing.T) {
	ctx := testutil.Context(t)
	q := open[int](t, local(t), "loop", nats.QueueOptions{})
	_, err := q.PutN(ctx, []int{1, 2, 3})
	testutil.NoError(t, err)
	for v, err := range q.All(ctx) {
		testutil.NoError(t, err)
		if v == 2 {
			break
		}
	}
	func() {
		defer func() { recover() }()
		for v, err := range q.All(ctx) {
			testutil.NoError(t, err)
			panic(v)
		}
	}()
	var left []int
	for range 2 {
		v, err := q.Get(ctx)
		testutil.NoError(t, err)
		left = append(left, v)
	}
	slices.Sort(left)
	if !slices.Equal(left, []int{2, 3}) {
		t.Errorf("%v", left)
	}
}

func TestQueue_DeadLetters(t *testing.T) {
	noBlocks(t)
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 1 << 20})
	q := open[*tensor.Tensor](t, connect(t, b.URL()), "poison", nats.QueueOptions{MaxDeliveries: 2})
	for _, n := range []int{4, 2 << 20} {
		x := tensor.Full(tensor.Uint8, 7, n)
		testutil.NoError(t, q.Put(ctx, x))
		for want := 1; want <= 2; want++ {
			d, err := q.Next(ctx)
			testutil.NoError(t, err)
			if d.Attempt != want {
				t.Errorf("attempt %d", d.Attempt)
			}
			testutil.NoError(t, errors.Join(d.Value.Close(), d.Nak(0)))
		}
		testutil.Eventually(t, func() bool {
			_, err := q.TryGet(ctx)
			testutil.ErrorIs(t, err, nats.ErrEmpty)
			return count(t, q).Dead == 1
		}, "it does not become a dead letter")
		dead := letters(t, q)
		if len(dead) != 1 || dead[0].Attempts != 2 || dead[0].Err != nil {
			t.Fatalf("%+v", dead)
		}
		testutil.ErrorContains(t, errors.New(dead[0].Reason), "delivered 2 times")
		same(t, dead[0].Value, x)
		testutil.NoError(t, dead[0].Value.Close())

		testutil.NoError(t, dead[0].Requeue(ctx))
		testutil.NoError(t, dead[0].Requeue(ctx)) // once
		d, err := q.Next(ctx)
		testutil.NoError(t, err)
		if d.Attempt != 1 {
			t.Errorf("attempt %d", d.Attempt)
		}
		same(t, d.Value, x)
		testutil.NoError(t, errors.Join(d.Value.Close(), d.Reject(ctx, "no good\nat all")))
		dead = letters(t, q)
		if len(dead) != 1 || dead[0].Reason != "no good at all" {
			t.Fatalf("%+v", dead)
		}
		testutil.NoError(t, errors.Join(dead[0].Value.Close(), dead[0].Delete(ctx), x.Close()))
		if s := count(t, q); s != (nats.QueueStats{}) {
			t.Errorf("the broker keeps %+v", s)
		}
	}
}

func letters[T any](t *testing.T, q *nats.Queue[T]) (all []*nats.DeadLetter[T]) {
	t.Helper()
	for d, err := range q.DeadLetters(testutil.Context(t)) {
		testutil.NoError(t, err)
		all = append(all, d)
	}
	return all
}

func TestQueue_Replay(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	q := open[int](t, c, "history", nats.QueueOptions{History: time.Hour, Capacity: 6})
	replay := func(since time.Time) (all []int) {
		for v, err := range q.Replay(ctx, since) {
			testutil.NoError(t, err)
			all = append(all, v)
		}
		return all
	}
	if all := replay(time.Time{}); all != nil {
		t.Errorf("%v", all)
	}
	_, err := q.PutN(ctx, []int{1, 2, 3})
	testutil.NoError(t, err)
	for range 2 {
		_, err := q.Get(ctx)
		testutil.NoError(t, err)
	}
	d, err := q.Next(ctx) // taken, not acknowledged
	testutil.NoError(t, err)
	time.Sleep(2 * time.Millisecond)
	middle := time.Now()
	_, err = q.PutN(ctx, []int{4, 5, 6})
	testutil.NoError(t, err)
	if all := replay(time.Time{}); !slices.Equal(all, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v", all)
	}
	if all := replay(middle); !slices.Equal(all, []int{4, 5, 6}) {
		t.Errorf("%v", all)
	}
	// It is full: what is acknowledged makes room, and nothing else.
	testutil.NoError(t, q.TryPut(ctx, 7))
	testutil.NoError(t, q.TryPut(ctx, 8))
	testutil.ErrorIs(t, q.TryPut(ctx, 9), nats.ErrFull)
	if all := replay(time.Time{}); !slices.Equal(all, []int{3, 4, 5, 6, 7, 8}) {
		t.Errorf("%v", all)
	}
	testutil.NoError(t, d.Ack(ctx))
	for want := 4; want <= 8; want++ {
		if v, err := q.Get(ctx); v != want || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	}
	testutil.NoError(t, q.TryPut(ctx, 9))
}

func TestQueue_HistoryEnds(t *testing.T) {
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 64 << 10})
	q := open[[]byte](t, connect(t, b.URL()), "short-history", nats.QueueOptions{History: 50 * time.Millisecond})
	testutil.NoError(t, q.Put(ctx, make([]byte, 300<<10)))
	_, err := q.Get(ctx)
	testutil.NoError(t, err)
	time.Sleep(60 * time.Millisecond)
	testutil.Eventually(t, func() bool {
		testutil.NoError(t, q.Put(ctx, []byte{1}))
		_, err := q.Get(ctx)
		testutil.NoError(t, err)
		return count(t, q).Bytes < 64<<10
	}, "acknowledged values do not go when they are old")
}

func TestOpenQueue_ChecksWhatThereIs(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	open[int](t, c, "checked", nats.QueueOptions{Capacity: 5, AckWait: time.Second, MaxDeliveries: 3})
	open[int](t, c, "checked", nats.QueueOptions{})
	open[int](t, c, "checked", nats.QueueOptions{Capacity: 5, MaxDeliveries: 3, AckWait: time.Second})
	_, err := nats.OpenQueue[string](ctx, c, "checked", nats.QueueOptions{})
	testutil.ErrorIs(t, err, nats.ErrType, ipc.ErrType)
	testutil.ErrorContains(t, err, "checked", "got values of int, want string", c.Host())
	for _, o := range []nats.QueueOptions{{Capacity: 6}, {AckWait: 2 * time.Second}, {MaxDeliveries: 4}, {History: 1},
		{InMemory: true}, {MaxBytes: 1 << 20}, {Replicas: 3}, {Replicas: 2}, {Capacity: -1}, {AckWait: 1}} {
		_, err := nats.OpenQueue[int](ctx, c, "checked", o)
		testutil.ErrorIs(t, err, nats.ErrOptions)
	}
	for _, name := range []string{"", "a b", "a.b", "a>", "ä"} {
		_, err := nats.OpenQueue[int](ctx, c, name, nats.QueueOptions{})
		testutil.ErrorIs(t, err, nats.ErrOptions)
	}
	_, err = nats.OpenQueue[chan int](ctx, c, "channels", nats.QueueOptions{})
	testutil.ErrorIs(t, err, wire.ErrType)
	var zero nats.Queue[int]
	testutil.NoError(t, zero.Close())
	testutil.ErrorIs(t, zero.Put(ctx, 1), nats.ErrClosed)
	_, err = zero.Get(ctx)
	testutil.ErrorIs(t, err, nats.ErrClosed)
}

func TestQueue_RefusesWhatCannotBeCopied(t *testing.T) {
	ctx := testutil.Context(t)
	q := open[any](t, local(t), "anything", nats.QueueOptions{})
	f, err := os.Open(os.DevNull)
	testutil.NoError(t, err)
	defer f.Close()
	testutil.ErrorIs(t, q.Put(ctx, f), nats.ErrShared)
	m, err := ipc.NewQueue[int](1)
	testutil.NoError(t, err)
	defer m.Close()
	n, err := q.PutN(ctx, []any{1, f, 2})
	testutil.ErrorIs(t, err, nats.ErrShared)
	if n > 1 {
		t.Errorf("%d", n)
	}
}

// Values that cannot be read become dead letters, and the next one is read.
func TestQueue_AnotherDeclarationOfTheType(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	old := open[any](t, c, "changed", nats.QueueOptions{})
	testutil.NoError(t, old.Put(ctx, unknown{1}))
	testutil.NoError(t, old.Put(ctx, 5))
	known.Store(false)
	defer known.Store(true)
	_, err := old.Get(ctx)
	testutil.ErrorIs(t, err, wire.ErrFormat)
	if v, err := old.Get(ctx); v != any(5) || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	dead := letters(t, old)
	if len(dead) != 1 || dead[0].Err == nil || dead[0].Reason == "" {
		t.Fatalf("%+v", dead)
	}
	known.Store(true)
	if dead = letters(t, old); dead[0].Err != nil || dead[0].Value != any(unknown{1}) {
		t.Errorf("%+v", dead[0])
	}
}
