package nats_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func openStore[T any](t testing.TB, c *nats.Conn, name string, o nats.StoreOptions) *nats.Store[T] {
	t.Helper()
	s, err := nats.OpenStore[T](testutil.Context(t), c, name, o)
	testutil.NoError(t, err)
	return s
}

func TestStore_Values(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	s := openStore[string](t, c, "values", nats.StoreOptions{})
	_, _, err := s.Get(ctx, "a")
	testutil.ErrorIs(t, err, nats.ErrNotExist)
	first, err := s.Create(ctx, "a", "one")
	testutil.NoError(t, err)
	_, err = s.Create(ctx, "a", "two")
	testutil.ErrorIs(t, err, nats.ErrExist)
	second, err := s.Set(ctx, "a", "two")
	testutil.NoError(t, err)
	if second <= first {
		t.Errorf("version %d after %d", second, first)
	}
	_, err = s.CompareAndSwap(ctx, "a", first, "three")
	testutil.ErrorIs(t, err, nats.ErrVersion)
	third, err := s.CompareAndSwap(ctx, "a", second, "three")
	testutil.NoError(t, err)
	if v, version, err := s.Get(ctx, "a"); v != "three" || version != third || err != nil {
		t.Errorf("%q, version %d, %v", v, version, err)
	}
	testutil.NoError(t, s.Delete(ctx, "a"))
	testutil.NoError(t, s.Delete(ctx, "a"))
	_, _, err = s.Get(ctx, "a")
	testutil.ErrorIs(t, err, nats.ErrNotExist)
	_, err = s.CompareAndSwap(ctx, "a", 0, "four")
	testutil.NoError(t, err)
	_, err = s.CompareAndSwap(ctx, "layer.1/weight", 0, "five")
	testutil.NoError(t, err)
	_, err = s.CompareAndSwap(ctx, "a", 0, "six")
	testutil.ErrorIs(t, err, nats.ErrVersion)
	if keys, err := s.Keys(ctx); !slices.Equal(keys, []string{"a", "layer.1/weight"}) || err != nil {
		t.Errorf("%v, %v", keys, err)
	}
	for _, key := range []string{"", "a b", ".a", "a.", "a..b", "*", "ä", "a>"} {
		_, err := s.Set(ctx, key, "x")
		testutil.ErrorIs(t, err, nats.ErrOptions)
		testutil.ErrorIs(t, s.Delete(ctx, key), nats.ErrOptions)
	}
	_, err = nats.OpenStore[int](ctx, c, "values", nats.StoreOptions{})
	testutil.ErrorIs(t, err, nats.ErrType)
	_, err = nats.OpenStore[string](ctx, c, "values", nats.StoreOptions{MaxBytes: 1 << 20})
	testutil.ErrorIs(t, err, nats.ErrOptions)
	testutil.NoError(t, c.DeleteStore(ctx, "values"))
	testutil.NoError(t, c.DeleteStore(ctx, "values"))
}

// Large tensors are replaced while others read them: each reader gets one that was set, whole.
func TestStore_LargeTensorsAreWhole(t *testing.T) {
	noBlocks(t)
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 256 << 10})
	c := connect(t, b.URL())
	s := openStore[*tensor.Tensor](t, c, "weights", nats.StoreOptions{})
	const elements, rounds = 300_000, 15
	set := func(n float64) {
		x := tensor.Full(tensor.Float32, n, elements)
		defer x.Close()
		_, err := s.Set(ctx, "layer.weight", x)
		testutil.NoError(t, err)
	}
	set(0)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			last := float32(0)
			for {
				x, _, err := s.Get(ctx, "layer.weight")
				if err != nil {
					t.Error(err)
					return
				}
				data := tensor.Data[float32](x)
				for i, v := range data {
					if v != data[0] || v < last {
						t.Errorf("element %d is %v, the first %v, and before %v", i, v, data[0], last)
						break
					}
				}
				last = data[0]
				x.Close()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range rounds {
		set(float64(i + 1))
	}
	close(done)
	all.Wait()
	small := tensor.Full(tensor.Float32, 1, 2)
	defer small.Close()
	_, version, err := s.Get(ctx, "layer.weight")
	testutil.NoError(t, err)
	_, err = s.CompareAndSwap(ctx, "layer.weight", version, small)
	testutil.NoError(t, err)
	q := open[int](t, c, "unused", nats.QueueOptions{}) // the broker's account of all streams
	_ = q
	x, _, err := s.Get(ctx, "layer.weight")
	testutil.NoError(t, err)
	same(t, x, small)
	x.Close()
	testutil.Eventually(t, func() bool { return b.Stats().Bytes < 64<<10 }, "replaced chunks are not removed")
}

// Several processes change one value, and no change is lost.
func TestStore_UpdateLosesNothing(t *testing.T) {
	ctx := testutil.Context(t)
	url := start(t, broker.Options{}).URL()
	const writers, times = 4, 25
	var all sync.WaitGroup
	for range writers {
		s := openStore[int](t, connect(t, url), "counters", nats.StoreOptions{})
		all.Go(func() {
			for range times {
				if _, err := s.Update(ctx, "n", func(n int, _ uint64) (int, error) { return n + 1, nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := openStore[int](t, connect(t, url), "counters", nats.StoreOptions{})
	if n, _, err := s.Get(ctx, "n"); n != writers*times || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	stop := errors.New("stop")
	_, err := s.Update(ctx, "n", func(int, uint64) (int, error) { return 0, stop })
	testutil.ErrorIs(t, err, stop)
}

func TestStore_Watch(t *testing.T) {
	ctx, cancel := context.WithCancel(testutil.Context(t))
	s := openStore[int](t, local(t), "watched", nats.StoreOptions{})
	for i, key := range []string{"a", "b.x", "b.y"} {
		_, err := s.Set(ctx, key, i)
		testutil.NoError(t, err)
	}
	seen := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		for e, err := range s.Watch(ctx, "b.*") {
			if err != nil {
				ended <- err
				return
			}
			seen <- fmt.Sprint(e.Key, " ", e.Value, " ", e.Deleted)
		}
		ended <- nil
	}()
	for _, want := range []string{"b.x 1 false", "b.y 2 false"} {
		if got := <-seen; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	_, err := s.Set(ctx, "a", 8)
	testutil.NoError(t, err)
	_, err = s.Set(ctx, "b.x", 9)
	testutil.NoError(t, err)
	testutil.NoError(t, s.Delete(ctx, "b.y"))
	for _, want := range []string{"b.x 9 false", "b.y 0 true"} {
		select {
		case got := <-seen:
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is seen")
		}
	}
	cancel()
	testutil.ErrorIs(t, <-ended, context.Canceled)
}

func TestStore_IsFull(t *testing.T) {
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 64 << 10})
	s := openStore[[]byte](t, connect(t, b.URL()), "tiny", nats.StoreOptions{MaxBytes: 100 << 10})
	_, err := s.Set(ctx, "a", make([]byte, 50<<10))
	testutil.NoError(t, err)
	for _, size := range []int{60 << 10, 300 << 10} {
		_, err = s.Set(ctx, "b", make([]byte, size))
		testutil.ErrorIs(t, err, nats.ErrStorage)
		testutil.ErrorContains(t, err, "tiny", "maximum bytes")
	}
	if v, _, err := s.Get(ctx, "a"); len(v) != 50<<10 || err != nil {
		t.Errorf("%d, %v", len(v), err)
	}
}
