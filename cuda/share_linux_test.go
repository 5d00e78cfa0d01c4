package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// ends are what a worker of these tests gets.
type ends struct {
	In  *ipc.Receiver[*tensor.Tensor]
	Out *ipc.Sender[*tensor.Tensor]
}

// fillColumn writes its rank into its column of a tensor on a device, and sends on the tensor that
// it received.
var fillColumn = shoal.Register("fillColumn", func(ctx context.Context, rank int, e ends) error {
	x, err := e.In.Get(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	rows, columns := x.Dim(0), x.Dim(1)
	for i := range rows {
		at := (x.Offset() + i*columns + rank) * x.DType().Size()
		one := tensor.FromSlice([]float32{float32(rank + 1)}, 1)
		if err := cuda.MemoryOf(x).Write(at, tensor.Bytes(one)); err != nil {
			return err
		}
	}
	return e.Out.Put(ctx, x)
})

func TestDevice_ProcessesWorkOnOneTensor(t *testing.T) {
	onDevices(t, 1, 64*mib)
	ctx := testutil.Context(t)
	const workers = 4
	in, err := ipc.NewQueue[*tensor.Tensor](workers)
	testutil.NoError(t, err)
	out, err := ipc.NewQueue[*tensor.Tensor](workers)
	testutil.NoError(t, err)
	x, err := tensor.On(device(t, "cuda")).Zeros(tensor.Float32, 5, workers)
	testutil.NoError(t, err)
	for range workers {
		testutil.NoError(t, in.Put(ctx, x))
	}
	testutil.NoError(t, fillColumn.Spawn(ctx, workers, ends{in.Receiver(), out.Sender()}))
	for range workers {
		y, err := out.Get(ctx)
		testutil.NoError(t, err)
		if !y.SameStorage(x) {
			t.Error("what comes back is another storage")
		}
		testutil.NoError(t, y.Close())
	}
	for i, v := range onHost(t, x) {
		if v != float32(i%workers+1) {
			t.Fatalf("element %d is %v:\n%v", i, v, x)
		}
	}
	testutil.NoError(t, x.Close())
	testutil.NoError(t, in.Close())
	testutil.NoError(t, out.Close())
}

// makeAndGo sends a tensor and ends.
var makeAndGo = shoal.Register("makeAndGo", func(ctx context.Context, rank int, out *ipc.Sender[*tensor.Tensor]) error {
	dev, err := cuda.ForRank(rank)
	if err != nil {
		return err
	}
	x, err := tensor.On(dev).Full(tensor.Float32, float64(rank), 1000, 10)
	if err != nil {
		return err
	}
	defer x.Close()
	part := x.Select(1, 3)
	defer part.Close()
	return out.Put(ctx, part)
})

func TestSegment_OutlivesItsSender(t *testing.T) {
	n := needed(2)
	devices := onDevices(t, n, 64*mib)
	ctx := testutil.Context(t)
	const senders = 4
	q, err := ipc.NewQueue[*tensor.Tensor](senders)
	testutil.NoError(t, err)
	testutil.NoError(t, makeAndGo.Spawn(ctx, senders, q.Sender()))
	var seen [senders]bool
	for range senders {
		x, err := q.Get(ctx)
		testutil.NoError(t, err)
		first := x.Select(0, 999)
		rank := int(first.Item())
		if want := fmt.Sprintf("cuda:%d", rank%n); x.Device().String() != want || x.Numel() != 1000 || seen[rank] {
			t.Errorf("from rank %d: %v on %v", rank, x.Shape(), x.Device())
		}
		seen[rank] = true
		testutil.NoError(t, first.Close())
		testutil.NoError(t, x.Close())
	}
	testutil.NoError(t, q.Close())
	for i := range n { // the last one lets go of the memory
		comesTo(t, devices, i, 0)
	}
}

// countMappings receives tensors, and says how much it has mapped when it has them all.
var countMappings = shoal.Register("countMappings", func(ctx context.Context, _ int, e mapper) error {
	var all []*tensor.Tensor
	for range tensorsOfASegment {
		x, err := e.In.Get(ctx)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	mapped := cuda.Mapped()
	if s := cuda.Simulator(); s != nil {
		mapped = s.Open().Mappings
	}
	err := e.Mapped.Put(ctx, mapped)
	for _, x := range all {
		err = errors.Join(err, x.Close())
	}
	return err
})

const tensorsOfASegment = 5

type mapper struct {
	In     *ipc.Receiver[*tensor.Tensor]
	Mapped *ipc.Sender[int]
}

// A process maps a segment once, however many of its tensors it has.
func TestSegment_IsImportedOnce(t *testing.T) {
	dev, ctx := onDevice(t), testutil.Context(t)
	in, err := ipc.NewQueue[*tensor.Tensor](tensorsOfASegment)
	testutil.NoError(t, err)
	out, err := ipc.NewQueue[int](1)
	testutil.NoError(t, err)
	for range tensorsOfASegment {
		x, err := tensor.On(dev).Ones(tensor.Float32, 100)
		testutil.NoError(t, err)
		testutil.NoError(t, errors.Join(in.Put(ctx, x), x.Close()))
	}
	testutil.NoError(t, countMappings.Spawn(ctx, 1, mapper{in.Receiver(), out.Sender()}))
	if n, err := out.Get(ctx); n != 1 || err != nil {
		t.Errorf("%d mappings, %v", n, err)
	}
	testutil.NoError(t, errors.Join(in.Close(), out.Close()))
}

// whereItIs says where a tensor is for this process, and what it holds.
var whereItIs = shoal.Register("whereItIs", func(ctx context.Context, _ int, s sighting) error {
	x, err := s.In.Get(ctx)
	if errors.Is(err, cuda.ErrDevice) {
		return s.Said.Put(ctx, "not to be seen")
	}
	if err != nil {
		return err
	}
	first := x.Select(0, 0)
	said := fmt.Sprint(x.Device(), " ", first.Item())
	return errors.Join(s.Said.Put(ctx, said), first.Close(), x.Close())
})

type sighting struct {
	In   *ipc.Receiver[*tensor.Tensor]
	Said *ipc.Sender[string]
}

// Which devices a process sees, and in which order, is its own matter, as CUDA_VISIBLE_DEVICES
// makes it.
func TestDevice_IsTheSameInAnyOrder(t *testing.T) {
	devices := simulate(t, 3, 64*mib)
	ctx, paths := testutil.Context(t), devices.Paths()
	in, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	out, err := ipc.NewQueue[string](1)
	testutil.NoError(t, err)
	x, err := tensor.On(device(t, "cuda:0")).Full(tensor.Float32, 7, 10)
	testutil.NoError(t, err)
	for sees, want := range map[string]string{
		strings.Join(paths, ","):                      "cuda:0 7",
		strings.Join(paths[1:], ",") + "," + paths[0]: "cuda:2 7",
		paths[0]:                  "cuda:0 7",
		paths[2] + "," + paths[1]: "not to be seen",
	} {
		testutil.NoError(t, in.Put(ctx, x))
		g, err := whereItIs.Start(ctx, 1, sighting{in.Receiver(), out.Sender()},
			shoal.Options{Env: []string{cuda.SimulateKey + "=" + sees}})
		testutil.NoError(t, err)
		if said, err := out.Get(ctx); said != want || err != nil {
			t.Errorf("%s, %v; want %s", said, err, want)
		}
		testutil.NoError(t, g.Wait())
	}
	testutil.NoError(t, errors.Join(x.Close(), in.Close(), out.Close()))
}

// blocks take the blocks of a message within one process.
type blocks struct {
	d     *arena.Domain
	table []arena.Handle
}

func (b blocks) Take(i int) (arena.Handle, error) { return b.table[i], b.d.Import(b.table[i]) }

// cross sends what write wrote to this process, as a tensor.
func cross(t *testing.T, write func(e *codec.Encoder)) (*tensor.Tensor, error) {
	t.Helper()
	d, err := arena.Default()
	testutil.NoError(t, err)
	var e codec.Encoder
	e.Reset(nil)
	write(&e)
	testutil.NoError(t, e.Err())
	defer e.Done(true)
	m := e.Message()
	var dec codec.Decoder
	dec.Reset(m, blocks{d, m.Blocks})
	x, err := codec.Decode[*tensor.Tensor](&dec)
	dec.Done(err == nil)
	return x, err
}

func TestMemory_ThatArrivesIsChecked(t *testing.T) {
	onDevices(t, 1, 64*mib)
	d, err := arena.Default()
	testutil.NoError(t, err)
	x, err := tensor.On(device(t, "cuda")).Zeros(tensor.Float32, 10)
	testutil.NoError(t, err)
	defer x.Close()
	y, err := cross(t, func(e *codec.Encoder) { testutil.NoError(t, codec.Encode(e, x)) })
	testutil.NoError(t, err)
	if !y.SameStorage(x) {
		t.Error("sent to itself it is another storage")
	}
	testutil.NoError(t, y.Close())

	segment := cuda.MemoryOf(x).Segment()
	stranger, err := d.Alloc(0)
	testutil.NoError(t, err)
	defer d.Release(stranger)
	place := func(e *codec.Encoder, segment, block arena.Handle, off, size uint64) {
		e.Block(segment)
		e.Block(block)
		e.Uint(off)
		e.Uint(size)
	}
	page, err := d.Alloc(os.Getpagesize())
	testutil.NoError(t, err)
	defer d.Release(page)
	timed := func(clock arena.Handle, number uint64) func(e *codec.Encoder) {
		return func(e *codec.Encoder) {
			e.ArrayLen(8)
			e.Uint(2) // a device's tag
			e.Uint(uint64(tensor.Float32))
			e.String("cuda")
			e.Uint(40)
			e.ArrayLen(8)
			e.Uint(1) // memory that is awaited
			place(e, segment, stranger, 0, 40)
			e.Block(clock)
			e.Uint(uint64(stranger))
			e.Uint(number)
		}
	}
	put := func(kind string, segment arena.Handle, announced, off, size uint64) func(e *codec.Encoder) {
		return func(e *codec.Encoder) {
			e.ArrayLen(8)
			e.Uint(2) // a device's tag
			e.Uint(uint64(tensor.Float32))
			e.String(kind)
			e.Uint(announced)
			e.ArrayLen(5)
			e.Uint(0) // memory that was written
			place(e, segment, stranger, off, size)
			e.Uint(0)
			e.ArrayLen(1)
			e.Uint(10)
			e.Nil()
		}
	}
	later := func(e *codec.Encoder) {
		e.ArrayLen(8)
		e.Uint(2) // a device's tag
		e.Uint(uint64(tensor.Float32))
		e.String("cuda")
		e.Uint(40)
		e.ArrayLen(2)
		e.Uint(2) // no program has this tag yet
		e.Nil()
	}
	for name, c := range map[string]struct {
		write func(e *codec.Encoder)
		want  error
	}{
		"memory of a later version": {later, codec.ErrTag},
		"a device of another kind":  {put("tpu", segment, 40, 0, 40), tensor.ErrDevice},
		"no segment":                {put("cuda", stranger, 40, 0, 40), cuda.ErrKeeper},
		"beyond the segment":        {put("cuda", segment, 40, 1<<40, 40), cuda.ErrRange},
		"larger than the segment":   {put("cuda", segment, 1<<40, 0, 1<<40), cuda.ErrRange},
		"not as announced":          {put("cuda", segment, 80, 0, 40), tensor.ErrLayout},
		"a clock without a page":    {timed(stranger, 1), cuda.ErrRange},
		"number 0 of a clock":       {timed(page, 0), cuda.ErrRange},
		"a number beyond a clock":   {timed(page, 1<<30), cuda.ErrRange},
		"too small for its shape":   {put("cuda", segment, 36, 0, 36), tensor.ErrLayout},
	} {
		if _, err := cross(t, c.write); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
