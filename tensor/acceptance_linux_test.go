package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// The tests of docs/acceptance.md that need tensors in several processes.

// domain makes one of so many bytes for this test and its workers, which is more than an emulator
// can do.
func domain(t *testing.T, budget int64) *arena.Domain {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes many processes, or much memory")
	}
	d, err := arena.New(arena.Options{Budget: budget})
	testutil.NoError(t, err)
	use(t, d)
	return d
}

// held is what a process has open and mapped of shared memory.
func held() (files, maps int, err error) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, 0, err
	}
	text, err := os.ReadFile("/proc/self/maps")
	return len(open), strings.Count(string(text), "memfd:"), err
}

const (
	manyTensors = 100_000
	fewFiles    = 64
)

// frugal allows this process few files.
func frugal() error {
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: fewFiles, Max: fewFiles})
}

var produce = shoal.Register("produce", func(ctx context.Context, _ int, out *ipc.Sender[*tensor.Tensor]) error {
	defer out.Close()
	if err := frugal(); err != nil {
		return err
	}
	for i := range manyTensors {
		x, err := tensor.NewShared(tensor.Float32, 1)
		if err != nil {
			return err
		}
		tensor.Data[float32](x)[0] = float32(i)
		if err := errors.Join(out.Put(ctx, x), x.Close()); err != nil {
			return err
		}
	}
	return nil
})

var hoard = shoal.Register("hoard", func(ctx context.Context, _ int, in *ipc.Receiver[*tensor.Tensor]) error {
	defer in.Close()
	if err := frugal(); err != nil {
		return err
	}
	files, maps, err := held()
	if err != nil {
		return err
	}
	var all []*tensor.Tensor
	for x, err := range in.All(ctx) {
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	nowFiles, nowMaps, err := held()
	if err != nil || nowFiles > files+few || nowMaps > maps+few {
		return fmt.Errorf("%d files and %d mappings became %d and %d, %v", files, maps, nowFiles, nowMaps, err)
	}
	for i, x := range all {
		if v := tensor.Data[float32](x)[0]; v != float32(i) {
			return fmt.Errorf("tensor %d is %v", i, v)
		}
		if err := x.Close(); err != nil {
			return err
		}
	}
	if len(all) != manyTensors {
		return fmt.Errorf("%d tensors arrived", len(all))
	}
	return nil
})

// few descriptors come and go with the watchers of participants, however many tensors there are.
const few = 8

// Tensors that are kept need no descriptors and no mappings.
func TestTensor_NeedsNoDescriptor(t *testing.T) {
	d := domain(t, 256<<20)
	q, err := ipc.NewQueue[*tensor.Tensor](1000)
	testutil.NoError(t, err)
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{})
	hoard.Go(g, q.Receiver())
	produce.Go(g, q.Sender())
	testutil.NoError(t, q.Close())
	testutil.NoError(t, g.Wait())
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

const (
	bigTensors = 64
	bigFloats  = 16 << 20 / 8
)

var putAndExit = shoal.Register("putAndExit", func(ctx context.Context, _ int, out *ipc.Sender[*tensor.Tensor]) error {
	for i := range bigTensors {
		x, err := tensor.NewShared(tensor.Float64, bigFloats)
		if err != nil {
			return err
		}
		if err := out.Put(ctx, x.Fill(float64(i))); err != nil {
			return err
		}
	}
	os.Exit(0) // at once: nothing is closed, nothing is waited for
	return nil
})

// What was put is there, whoever is gone.
func TestTensor_OutlivesItsSender(t *testing.T) {
	d := domain(t, 1200<<20)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[*tensor.Tensor](ipc.Unbounded)
	testutil.NoError(t, err)
	if err := putAndExit.Spawn(ctx, 1, q.Sender()); errors.Is(err, arena.ErrNoSpace) {
		t.Skipf("this machine has too little memory: %v", err)
	} else if !errors.Is(err, shoal.ErrExited) { // it had no business to exit
		t.Errorf("the sender: %v", err)
	}
	testutil.NoError(t, q.Sender().Close())
	n := 0
	for x, err := range q.All(ctx) {
		testutil.NoError(t, err)
		if sum := x.Sum(); sum != float64(n)*bigFloats {
			t.Fatalf("the sum of tensor %d is %v", n, sum)
		}
		testutil.NoError(t, x.Close())
		n++
	}
	if n != bigTensors {
		t.Errorf("%d tensors arrived", n)
	}
	testutil.NoError(t, q.Close())
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

type passing struct {
	From *ipc.Receiver[*tensor.Tensor]
	To   *ipc.Sender[*tensor.Tensor]
}

var passOn = shoal.Register("passOn", func(ctx context.Context, _ int, p passing) error {
	x, err := p.From.Get(ctx)
	if err != nil {
		return err
	}
	if err := p.To.Put(ctx, x.AddScalarInPlace(1)); err != nil {
		return err
	}
	<-ctx.Done() // it is killed with all that it has
	return nil
})

// A tensor goes from A to B to C, and is C's when A and B are killed.
func TestTensor_ForwardedOutlivesBoth(t *testing.T) {
	d := domain(t, 64<<20)
	ctx := testutil.Context(t)
	queue := func() *ipc.Queue[*tensor.Tensor] {
		q, err := ipc.NewQueue[*tensor.Tensor](1)
		testutil.NoError(t, err)
		return q
	}
	first, second, third := queue(), queue(), queue()
	g := shoal.NewGroup(ctx, shoal.Options{})
	a := passOn.Go(g, passing{first.Receiver(), second.Sender()})
	b := passOn.Go(g, passing{second.Receiver(), third.Sender()})
	x, err := tensor.NewShared(tensor.Float32, 1000)
	testutil.NoError(t, err)
	testutil.NoError(t, errors.Join(first.Put(ctx, x), x.Close()))
	testutil.NoError(t, third.Poll(ctx))
	testutil.NoError(t, errors.Join(a.Kill(), b.Kill()))
	<-a.Done()
	<-b.Done()
	got, err := third.Get(ctx)
	testutil.NoError(t, err)
	if sum := got.Sum(); sum != 2000 {
		t.Errorf("the sum is %v", sum)
	}
	testutil.NoError(t, errors.Join(got.Close(), first.Close(), second.Close(), third.Close()))
	g.Close()
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

// A message is as long for a gibibyte as for a byte, and nothing of either is copied or mapped.
func TestTensor_IsSentWithoutACopyWhateverItsSize(t *testing.T) {
	d := domain(t, 1100<<20)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	for size := 4; size <= 1<<30; size <<= 7 {
		x, err := tensor.NewShared(tensor.Uint8, size)
		if errors.Is(err, arena.ErrNoSpace) {
			t.Logf("this machine has too little memory for %d bytes: %v", size, err)
			break
		}
		testutil.NoError(t, err)
		testutil.NoError(t, q.Put(ctx, x))
		before := d.Stats()
		_, maps, err := held()
		testutil.NoError(t, err)
		y, err := q.Get(ctx)
		testutil.NoError(t, err)
		after := d.Stats()
		_, nowMaps, err := held()
		testutil.NoError(t, err)
		if unsafe.SliceData(tensor.Data[uint8](x)) != unsafe.SliceData(tensor.Data[uint8](y)) {
			t.Errorf("%d bytes have arrived elsewhere", size)
		}
		if after.Copied != before.Copied || after.Blocks != before.Blocks || nowMaps != maps {
			t.Errorf("%d bytes: %+v became %+v; %d mappings became %d", size, before, after, maps, nowMaps)
		}
		testutil.NoError(t, errors.Join(x.Close(), y.Close()))
	}
	testutil.NoError(t, q.Close())
}

// What a worker is started with is as long whatever it shares.
func TestTensor_MakesAnArgumentNoLonger(t *testing.T) {
	domain(t, 300<<20)
	plan, err := codec.PlanOf[*tensor.Tensor]()
	testutil.NoError(t, err)
	length := func(n int) int {
		x, err := tensor.NewShared(tensor.Uint8, n, 1)
		if full, ok := errors.AsType[*arena.SpaceError](err); ok && full.Machine != "" {
			t.Skipf("this machine has too little memory, and the budget enough: %v", err)
		}
		testutil.NoError(t, err)
		defer x.Close()
		var e codec.Encoder
		e.Reset(nil)
		testutil.NoError(t, plan.Encode(&e, x))
		defer e.Done(false)
		return len(e.Message().Body)
	}
	if small, large := length(1<<16), length(256<<20); large != small {
		t.Errorf("%d bytes became %d", small, large)
	}
}

var meet = shoal.Register("meet", func(ctx context.Context, _ int, b *ipc.Barrier) error {
	_, err := b.Wait(ctx)
	return errors.Join(err, b.Close())
})

// As many workers as a big machine has live at the same time.
func TestTensor_IsWrittenByManyWorkers(t *testing.T) {
	d := domain(t, 64<<20)
	const workers = 64
	b, err := ipc.NewBarrier(workers)
	testutil.NoError(t, err)
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Workers: workers, Threads: 1})
	for range workers {
		meet.Go(g, b)
	}
	testutil.NoError(t, errors.Join(g.Wait(), b.Close()))
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

// Every element type arrives in every layout.
func TestTensor_OfEveryDTypeArrivesInEveryLayout(t *testing.T) {
	d := local(t)
	layouts := map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"contiguous":   func(x *tensor.Tensor) *tensor.Tensor { return x },
		"transposed":   func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 2) },
		"narrowed":     func(x *tensor.Tensor) *tensor.Tensor { return x.Narrow(1, 1, 3) },
		"every second": func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(2, 0, 6, 2) },
		"expanded":     func(x *tensor.Tensor) *tensor.Tensor { return x.Unsqueeze(1).Expand(4, 3, 5, 6) },
		"a scalar":     func(x *tensor.Tensor) *tensor.Tensor { return x.Select(0, 2).Select(0, 0).Select(0, 5) },
		"empty":        func(x *tensor.Tensor) *tensor.Tensor { return x.Narrow(0, 2, 0) },
		"overlapping":  func(x *tensor.Tensor) *tensor.Tensor { return x.AsStrided([]int{5, 5}, []int{3, 1}, 2) },
	}
	for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
		for name, layout := range layouts {
			x, err := tensor.NewShared(dt, 4, 5, 6)
			testutil.NoError(t, err)
			odd := x.Slice(2, 1, 6, 2)
			odd.Fill(1)
			v := layout(x)
			got, err := cross(t, d, v)
			testutil.NoError(t, err)
			if got.DType() != dt || got.Offset() != v.Offset() ||
				fmt.Sprint(got.Shape(), got.Strides()) != fmt.Sprint(v.Shape(), v.Strides()) || !tensor.Equal(got, v) {
				t.Errorf("%v, %s: %v of strides %v arrived as %v of strides %v", dt, name, v, v.Strides(),
					got, got.Strides())
			}
			testutil.NoError(t, errors.Join(got.Close(), v.Close(), x.Close(), odd.Close()))
		}
	}
	collect(t, func() bool { return d.Stats().Blocks == 0 }) // with the views in between, which nobody has closed
}
