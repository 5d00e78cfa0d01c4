package cuda

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/bench"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// Suite measures transfers between processes, copies, additions and the memory leaked by killed
// processes. It requires a device.
var Suite = bench.NewSuite("cuda",
	"tensors on a GPU: transfers, copies, additions, and memory after killed processes", "torch_cuda.py", 9, suiteRows)

const (
	gib        = 1 << 30
	multiplied = 4096 // rows and columns of a matrix
	kills      = 200
	atOnce     = 8
)

func suiteRows(ctx context.Context, scale func(int) int) ([]bench.Case, func() error, error) {
	dev, err := cuda.Current()
	if err != nil {
		return nil, nil, err
	}
	size := scale(gib) &^ 3
	x, err := tensor.On(dev).Ones(tensor.Float32, size/4)
	if err != nil {
		return nil, nil, err
	}
	t, err := newTaker(ctx, x)
	if err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	c, err := newCopier(dev, x)
	if err != nil {
		return nil, nil, errors.Join(err, t.close(), x.Close())
	}
	single, err := newMultiplier(dev, tensor.Float32, scale(multiplied))
	if err != nil {
		return nil, nil, errors.Join(err, c.close(), t.close(), x.Close())
	}
	half, err := newMultiplier(dev, tensor.BFloat16, scale(multiplied))
	if err != nil {
		return nil, nil, errors.Join(err, single.close(), c.close(), t.close(), x.Close())
	}
	end := func() error {
		return errors.Join(half.close(), single.close(), c.close(), t.close(), x.Close(), tensor.EmptyCache())
	}
	k := &killer{dev: dev, n: scale(kills)}
	return []bench.Case{
		{
			Name: "handoff_1GiB", Unit: bench.Nanoseconds, Ours: newProbe(t.measure, scale(2000)),
			Peer: bench.AskPeer("cuda_handoff", size, scale(200)), Target: transferTarget,
		}, {
			Name: "handoff_1GiB_written", Unit: bench.Nanoseconds, Ours: newProbe(t.measureAfterWrite, scale(2000)),
			Peer: bench.AskPeer("cuda_handoff_written", size, scale(200)),
		}, {
			Name: "copy_1GiB", Unit: bench.Nanoseconds, Ours: newProbe(c.measureOurs, scale(20)),
			Floor: newProbe(c.driver.measure, scale(20)),
			Peer:  bench.AskPeer("cuda_copy", size, scale(20)), Target: driverTarget,
		}, {
			Name: "add_1GiB", Unit: bench.Nanoseconds, Ours: newProbe(c.measureAdd, scale(20)),
			Floor: c.bandwidthProbe(scale(20)), Target: bandwidthTarget,
		}, {
			Name: "matmul_4096_float32", Unit: bench.Nanoseconds, Ours: newProbe(single.measure, scale(20)),
			Peer: bench.AskPeer("cuda_matmul_float32", scale(multiplied), scale(20)), Target: torchTarget,
		}, {
			Name: "matmul_4096_bfloat16", Unit: bench.Nanoseconds, Ours: newProbe(half.measure, scale(200)),
			Peer: bench.AskPeer("cuda_matmul_bfloat16", scale(multiplied), scale(200)), Target: torchTarget,
		}, {
			Name: "left_by_200_killed", Unit: bench.Bytes, Ours: &bench.Probe{Measure: k.measureLostMemory, Once: true},
			Target: leakTarget,
		},
	}, end, nil
}

func newProbe(measure func(ctx context.Context, rounds int) error, rounds int) *bench.Probe {
	return &bench.Probe{Measure: func(ctx context.Context) (float64, error) {
		begin := time.Now()
		err := measure(ctx, rounds)
		return float64(time.Since(begin)) / float64(rounds), err
	}}
}

// transferTarget returns the target for transfers as text, and reports whether r meets it. The
// target includes the peer only if one was measured.
func transferTarget(r bench.Result, _ []bench.Result) (text string, met bool) {
	text, met = "≤ 20 µs", r.Value <= 20_000
	if r.Peer != "" {
		text, met = text+", ≥ 20 × peer", met && r.RatioToPeer >= 20
	}
	return text, met
}

func driverTarget(r bench.Result, _ []bench.Result) (string, bool) {
	return "≤ 1.11 × floor", r.RatioToFloor <= 1/0.9
}

func bandwidthTarget(r bench.Result, _ []bench.Result) (string, bool) {
	return "≤ 1.18 × floor", r.RatioToFloor <= 1/0.85
}

// torchTarget returns the target relative to PyTorch's time as text, and reports whether r meets
// it. If PyTorch was not measured, it returns "" and false.
func torchTarget(r bench.Result, _ []bench.Result) (string, bool) {
	if r.Peer == "" {
		return "", false
	}
	return "≥ 0.97 × peer", r.RatioToPeer >= 0.97
}

// ofTheDriver is the amount of device memory in bytes that the driver may use for itself in the
// meantime, for example for the code of kernels. The exact amount is unknown. It is half of the
// memory segment that each killed process allocates, so a leaked segment exceeds it.
const ofTheDriver = 32 << 20

// leakTarget returns the target for the memory that killed processes leave, and reports whether r
// meets it.
func leakTarget(r bench.Result, _ []bench.Result) (string, bool) {
	return "< 32 MiB, the driver's", r.Value < ofTheDriver
}

// A taker is a process that receives tensors and acknowledges each, with the queues to it. The
// caller must call close, which ends the process.
type taker struct {
	x    *tensor.Tensor
	out  *ipc.Queue[*tensor.Tensor]
	back *ipc.Queue[int]
	g    *shoal.Group
}

type ends struct {
	In  *ipc.Receiver[*tensor.Tensor]
	Out *ipc.Sender[int]
}

var take = shoal.Register("bench cuda take", func(ctx context.Context, _ int, e ends) error {
	for {
		x, err := e.In.Get(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err == nil {
			n := x.Numel()
			err = errors.Join(x.Close(), e.Out.Put(ctx, n))
		}
		if err != nil {
			return err
		}
	}
})

func newTaker(ctx context.Context, x *tensor.Tensor) (t *taker, err error) {
	t = &taker{x: x}
	if t.out, err = ipc.NewQueue[*tensor.Tensor](1); err != nil {
		return nil, err
	}
	if t.back, err = ipc.NewQueue[int](1); err == nil {
		t.g, err = take.Start(ctx, 1, ends{t.out.Receiver(), t.back.Sender()}, shoal.Options{})
	}
	if err == nil { // the taker must have the only ends, so that its exit ends all waits
		err = errors.Join(t.out.Receiver().Close(), t.back.Sender().Close())
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// measure sends the tensor rounds times and waits for each acknowledgement. It queues no work on
// the device, so the transfers do not wait for the device.
func (t *taker) measure(ctx context.Context, rounds int) error {
	return t.passTensors(ctx, rounds, func() error { return nil })
}

// measureAfterWrite is like measure, but the device writes a word of the tensor just before, so
// that the transfer must be ordered after the write.
func (t *taker) measureAfterWrite(ctx context.Context, rounds int) error {
	return t.passTensors(ctx, rounds, func() error { return tensors.Memory(t.x).Fill(0, 4, []byte{0, 0, 0x80, 0x3f}) })
}

func (t *taker) passTensors(ctx context.Context, rounds int, before func() error) error {
	for range rounds {
		if err := before(); err != nil {
			return err
		}
		n := 0
		err := t.out.Put(ctx, t.x)
		if err == nil {
			n, err = t.back.Get(ctx)
		}
		switch {
		case errors.Is(err, ipc.ErrClosed):
			return errors.Join(t.g.Wait(), err)
		case err != nil:
			return err
		case n != t.x.Numel():
			return fmt.Errorf("received %d elements, want %d", n, t.x.Numel())
		}
	}
	return nil
}

func (t *taker) close() (err error) {
	if t.out != nil {
		err = t.out.Close()
	}
	if t.g != nil {
		err = errors.Join(err, t.g.Wait())
	}
	if t.back != nil {
		err = errors.Join(err, t.back.Close())
	}
	return err
}

// A copier copies a tensor on its device, with package tensor and with the driver alone. It does
// not own the tensor. The caller must call close.
type copier struct {
	dev    *cuda.Device
	x, y   *tensor.Tensor
	driver *bare
}

func newCopier(dev *cuda.Device, x *tensor.Tensor) (*copier, error) {
	y, err := tensor.On(dev).Empty(tensor.Float32, x.Numel())
	if err != nil {
		return nil, err
	}
	b, err := newBare(dev, x.Nbytes())
	if err != nil {
		return nil, errors.Join(err, y.Close())
	}
	return &copier{dev, x, y, b}, nil
}

func (c *copier) measureOurs(_ context.Context, rounds int) error {
	for range rounds {
		if err := tensors.Memory(c.y).Copy(0, tensors.Memory(c.x), 0, c.x.Nbytes()); err != nil {
			return err
		}
	}
	return c.dev.Synchronize()
}

// measureAdd adds x to y elementwise, rounds times, and waits for the device.
func (c *copier) measureAdd(_ context.Context, rounds int) (err error) {
	defer func() { // device errors are panics
		if p, ok := recover().(error); ok {
			err = p
		}
	}()
	for range rounds {
		c.y.AddInPlace(c.x)
	}
	return c.dev.Synchronize()
}

// bandwidthProbe returns a probe that estimates the minimum time of one addition in nanoseconds.
// It measures the driver's copy, which reads one tensor and writes one, and multiplies its time
// by 1.5, because an addition reads two tensors and writes one.
func (c *copier) bandwidthProbe(rounds int) *bench.Probe {
	copied := newProbe(c.driver.measure, rounds)
	return &bench.Probe{Measure: func(ctx context.Context) (float64, error) {
		ns, err := copied.Measure(ctx)
		return 1.5 * ns, err
	}}
}

func (c *copier) close() error { return errors.Join(c.driver.close(), c.y.Close()) }

// A killer measures the device memory that is lost when processes are killed that hold received
// and allocated tensors.
type killer struct {
	dev *cuda.Device
	n   int
}

var hoard = shoal.Register("bench cuda hoard", func(ctx context.Context, _ int, e ends) error {
	for {
		x, err := e.In.Get(ctx)
		if err != nil {
			return err
		}
		if _, err := tensor.On(x.Device()).Ones(tensor.Float32, 1000); err != nil {
			return err
		}
		if err := e.Out.Put(ctx, x.Numel()); err != nil {
			return err
		}
	}
})

// measureLostMemory kills k.n processes and returns the bytes of free device memory that are lost
// after all of them have been reaped. It waits up to ten seconds until fewer than [ofTheDriver] are
// lost.
func (k *killer) measureLostMemory(ctx context.Context) (float64, error) {
	x, err := tensor.On(k.dev).Ones(tensor.Float32, 1000)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	before, _, err := k.dev.MemInfo()
	if err != nil {
		return 0, err
	}
	for done := 0; done < k.n; done += atOnce {
		if err := k.killBatch(ctx, x, min(atOnce, k.n-done)); err != nil {
			return 0, err
		}
	}
	const patience = 10 * time.Second
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		free, _, err := k.dev.MemInfo()
		if err != nil || before-free < ofTheDriver || time.Now().After(end) {
			return float64(max(before-free, 0)), err
		}
	}
}

// killBatch starts n processes, makes each hold tensors, kills all of them, and waits until they
// have been reaped. It sends them x, which the caller keeps.
func (k *killer) killBatch(ctx context.Context, x *tensor.Tensor, n int) (err error) {
	in, err := ipc.NewQueue[*tensor.Tensor](n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := ipc.NewQueue[int](n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var groups []*shoal.Group
	defer func() {
		for _, g := range groups {
			for _, p := range g.Processes() {
				err = errors.Join(err, p.Signal(syscall.SIGKILL))
			}
			if died, ok := errors.AsType[*shoal.ProcessError](g.Wait()); !ok || died.Signal != syscall.SIGKILL {
				err = errors.Join(err, fmt.Errorf("process was not killed: %v", died))
			}
		}
	}()
	for range n {
		g, err := hoard.Start(ctx, 1, ends{in.Receiver(), out.Sender()}, shoal.Options{})
		if err != nil {
			return err
		}
		groups = append(groups, g)
	}
	for range n {
		if err := in.Put(ctx, x); err != nil {
			return err
		}
	}
	for range n { // a fast process may answer twice
		if _, err := out.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}
