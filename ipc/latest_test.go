package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An edition is a value of which it can be seen whether it is of one piece: its blocks and its text
// say its number.
type edition struct {
	N     int
	Text  string
	Blobs []*blob
}

// publish makes an edition; one in three does not fit into a slot.
func publish(d *arena.Domain, n int) (edition, error) {
	e := edition{N: n, Text: fmt.Sprint("edition ", n)}
	if n%3 == 0 {
		e.Text = strings.Repeat(e.Text+" ", 40)
	}
	for i := range 1 + n%6 {
		b, err := makeBlob(d, fmt.Sprintf("%d of edition %d;%2000d", i, n, n))
		if err != nil {
			return e, errors.Join(err, e.Close())
		}
		e.Blobs = append(e.Blobs, b)
	}
	return e, nil
}

// check returns an error unless the edition is whole.
func (e *edition) check() error {
	if !strings.HasPrefix(e.Text, fmt.Sprint("edition ", e.N)) || len(e.Blobs) != 1+e.N%6 {
		return fmt.Errorf("edition %d has %d blocks and says %.20q", e.N, len(e.Blobs), e.Text)
	}
	for i, b := range e.Blobs {
		want := fmt.Sprintf("%d of edition %d;%2000d", i, e.N, e.N)
		if got := string(b.bytes()[:len(want)]); got != want {
			return fmt.Errorf("block %d of edition %d says %.20q", i, e.N, got)
		}
	}
	return nil
}

func (e *edition) Close() (err error) {
	for _, b := range e.Blobs {
		err = errors.Join(err, b.Close())
	}
	return err
}

// store publishes and stores an edition.
func store(ctx context.Context, l *ipc.Latest[edition], n int) (uint64, error) {
	d, err := arena.Default()
	if err != nil {
		return 0, err
	}
	e, err := publish(d, n)
	if err != nil {
		return 0, err
	}
	version, err := l.Store(ctx, e)
	return version, errors.Join(err, e.Close())
}

func newLatest(t testing.TB, d *arena.Domain) *ipc.Latest[edition] {
	t.Helper()
	e, err := publish(d, 0)
	testutil.NoError(t, err)
	l, err := ipc.NewLatest(e)
	testutil.NoError(t, errors.Join(err, e.Close()))
	t.Cleanup(func() { l.Close() })
	return l
}

func TestLatest_HasWhatWasStoredLast(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, l := testutil.Context(t), newLatest(t, d)
		old, version, err := l.Load()
		testutil.NoError(t, errors.Join(err, old.check()))
		if version != 1 || l.Version() != 1 {
			t.Errorf("the first version is %d, or %d", version, l.Version())
		}
		for n := 1; n < 50; n++ {
			stored, err := store(ctx, l, n)
			testutil.NoError(t, err)
			e, version, err := l.Load()
			testutil.NoError(t, errors.Join(err, e.check()))
			if e.N != n || version != uint64(n+1) || version != stored || version != l.Version() {
				t.Fatalf("edition %d of version %d after edition %d of version %d", e.N, version, n, stored)
			}
			testutil.NoError(t, e.Close())
		}
		testutil.NoError(t, errors.Join(old.check(), old.Close())) // who holds it has it as it was
	})
}

func TestLatest_WaitReturnsTheNextVersion(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, l := testutil.Context(t), newLatest(t, d)
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for seen, last := uint64(0), -1; last < 30; {
					e, version, err := l.Wait(ctx, seen)
					if err := errors.Join(err, e.check(), e.Close()); err != nil {
						t.Error(err)
						return
					}
					if version <= seen || e.N <= last {
						t.Errorf("version %d with edition %d after %d with %d", version, e.N, seen, last)
					}
					seen, last = version, e.N
				}
			})
		}
		for n := 1; n <= 30; n++ {
			_, err := store(ctx, l, n)
			testutil.NoError(t, err)
		}
		readers.Wait()
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, _, err := l.Wait(short, l.Version())
		testutil.ErrorIs(t, err, context.DeadlineExceeded)
		if strings.Contains(err.Error(), "queue") {
			t.Errorf("a Latest is no queue: %v", err)
		}
	})
}

// In a local domain the race detector sees it.
func TestLatest_ManyStoreAndLoadAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, l := testutil.Context(t), newLatest(t, d)
		var writers, readers sync.WaitGroup
		done := make(chan struct{})
		for w := range 3 {
			writers.Go(func() {
				last := uint64(0)
				for n := range 100 {
					version, err := store(ctx, l, 3*n+w)
					if err != nil || version <= last {
						t.Errorf("version %d after %d: %v", version, last, err)
						return
					}
					last = version
				}
			})
		}
		for range 3 {
			readers.Go(func() {
				byVersion, last := map[uint64]int{}, uint64(0)
				for {
					select {
					case <-done:
						return
					default:
					}
					e, version, err := l.Load()
					if err := errors.Join(err, e.check(), e.Close()); err != nil {
						t.Error(err)
						return
					}
					if n, seen := byVersion[version]; version < last || seen && n != e.N {
						t.Errorf("version %d is edition %d; it came after version %d", version, e.N, last)
					}
					byVersion[version], last = e.N, version
				}
			})
		}
		writers.Wait()
		close(done)
		readers.Wait()
	})
}

// The version never falls, also while the value before is taken out. A look at one slot after the
// other once came to each too early or too late, and found none.
func TestLatest_VersionNeverFalls(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		l, err := ipc.NewLatest(0)
		testutil.NoError(t, err)
		defer l.Close()
		var readers sync.WaitGroup
		done := make(chan struct{})
		for range 2 {
			readers.Go(func() {
				for last := uint64(1); ; {
					select {
					case <-done:
						return
					default:
					}
					now := l.Version()
					if now < last {
						t.Errorf("version %d after %d", now, last)
						return
					}
					last = now
				}
			})
		}
		for n := range 20_000 {
			_, err := l.Store(ctx, n)
			testutil.NoError(t, err)
		}
		close(done)
		readers.Wait()
	})
}

func TestLatest_ThatIsClosedSaysSo(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, l := testutil.Context(t), newLatest(t, d)
		waiting := make(chan error)
		go func() {
			_, _, err := l.Wait(ctx, l.Version())
			waiting <- err
		}()
		time.Sleep(time.Millisecond) // it is right whether it waits already or not
		testutil.NoError(t, l.Close())
		testutil.ErrorIs(t, <-waiting, ipc.ErrClosed)
		_, _, err := l.Load()
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		_, err = store(ctx, l, 1)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		if l.Version() != 0 {
			t.Errorf("a closed one has version %d", l.Version())
		}
		var zero ipc.Latest[int]
		_, err = zero.Store(ctx, 1)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		_, _, err = zero.Wait(ctx, 0)
		testutil.ErrorIs(t, errors.Join(err, zero.Close()), ipc.ErrClosed)
	})
}

func TestLatest_IsReceivedAsWhatItIs(t *testing.T) {
	shared(t)
	l, err := ipc.NewLatest(5)
	testutil.NoError(t, err)
	defer l.Close()
	testutil.NoError(t, ipc.Bind(t.Context(), "latest", l))
	defer ipc.Unlink("latest")
	_, err = ipc.Lookup[*ipc.Latest[string]]("latest")
	testutil.ErrorIs(t, err, ipc.ErrType)
	again, err := ipc.Lookup[*ipc.Latest[int]]("latest")
	testutil.NoError(t, err)
	if _, err := again.Store(testutil.Context(t), 6); err != nil {
		t.Error(err)
	}
	testutil.NoError(t, again.Close())
	if v, version, err := l.Load(); v != 6 || version != 2 || err != nil {
		t.Errorf("%d of version %d, %v", v, version, err)
	}
	_, err = ipc.NewLatest(make(chan int))
	if err == nil {
		t.Error("a channel is stored")
	}
}
