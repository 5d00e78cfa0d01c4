package cuda_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
	"github.com/shoal-mp/shoal/torch"
)

var torchOptions = torch.Options{AuthKey: []byte("between two Go processes"), CUDA: true}

// doubleTorch receives what PyTorch would: tensors in PyTorch's form, of which it says the first
// and the last element before it doubles the first.
var doubleTorch = shoal.Register("doubleTorch", func(ctx context.Context, _ int, addr string) error {
	c, err := torch.Dial(ctx, "unix", addr, torchOptions)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		v, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		x, ok := v.(*tensor.Tensor)
		if p, learned := v.(*autograd.Param); learned {
			x, ok = p.T, true
		}
		if !ok {
			return nil
		}
		h, err := x.CPU()
		if err != nil {
			return err
		}
		first, last := tensor.At[float32](h, 0, 0), tensor.At[float32](h, 1, 2)
		one := tensor.FromSlice([]float32{2 * first}, 1)
		err = cuda.MemoryOf(x).Write(x.Offset()*4, tensor.Bytes(one))
		if err = errors.Join(err, x.Close()); err == nil {
			err = c.Send(ctx, python.Tuple{first, last})
		}
		if err != nil {
			return err
		}
	}
})

// startDoubling starts doubleTorch and returns the connection with it, and how to end it.
func startDoubling(t *testing.T) (ctx context.Context, c *torch.Conn, end func()) {
	t.Helper()
	ctx = testutil.Context(t)
	l, err := torch.Listen("unix", t.TempDir()+"/socket", torchOptions)
	testutil.NoError(t, err)
	g, err := doubleTorch.Start(ctx, 1, l.Addr(), shoal.Options{})
	testutil.NoError(t, err)
	c, err = l.Accept(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, l.Close())
	return ctx, c, func() { testutil.NoError(t, errors.Join(c.Send(ctx, "enough"), g.Wait(), c.Close())) }
}

func legacy(t *testing.T) tensor.Device {
	t.Helper()
	return cuda.LegacyDevice{Device: device(t, "cuda").(*cuda.Device)}
}

func TestLegacy_TensorsCrossInPyTorchsForm(t *testing.T) {
	devices := onDevices(t, 1, 64*mib)
	ctx, c, end := startDoubling(t)
	x, err := tensor.Arange(tensor.Float32, 0, 12, 1).View(4, 3).ToDevice(legacy(t))
	testutil.NoError(t, err)
	part := x.Slice(0, 1, 3, 1)
	if size, err := cuda.MemoryOf(x).Allocation(); size < 2*mib || err != nil {
		t.Errorf("it has an allocation of %d bytes, %v: another program that opens less sees its neighbours", size, err)
	}
	for round, v := range []any{part, &autograd.Param{T: part}} {
		testutil.NoError(t, c.Send(ctx, v))
		got, err := c.Recv(ctx)
		testutil.NoError(t, err)
		if want := []float64{[]float64{3, 6}[round],
			8}; !slices.Equal([]float64{got.(python.Tuple)[0].(float64), got.(python.Tuple)[1].(float64)}, want) {
			t.Errorf("it read %v, not %v", got, want)
		}
	}
	if got := onHost(t, x); got[2] != 2 || got[3] != 12 || got[4] != 4 {
		t.Errorf("it wrote %v", got)
	}
	testutil.NoError(t, part.Close())
	testutil.NoError(t, x.Close())
	eventually(t, func() string { // it said so before it ended the last
		out, err := torch.CollectCUDA()
		testutil.NoError(t, err)
		return []string{"all are back", "some are out", "some are out"}[out]
	}, "all are back")
	end() // the other process's context takes memory of a GPU
	comesTo(t, devices, 0, 0)
}

// openAsOthers opens memory of another process as others do, and as nobody may.
var openAsOthers = shoal.Register("openAsOthers", func(ctx context.Context, _ int, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	h := [64]byte(b)
	d, err := cuda.Get(0)
	if err != nil {
		return err
	}
	first, err := d.Open(ctx, h, 0, 8, nil)
	if err != nil {
		return err
	}
	second, err := d.Open(ctx, h, 8, 8, nil)
	if err != nil {
		return err
	}
	if at, next := cuda.MemoryOf(first).Pointer(), cuda.MemoryOf(second).Pointer(); at+8 != next {
		return fmt.Errorf("it is opened at %#x and at %#x", at, next)
	}
	if err := errors.Join(first.Close(), cuda.MemoryOf(second).Read(make([]byte, 8), 0)); err != nil {
		return fmt.Errorf("the second when the first has ended: %w", err)
	}
	ended := func() error { panic("what was not opened has ended") }
	for _, bad := range [][2]int{{0, 1 << 40}, {1 << 40, 1}, {-1, 1}, {0, -1}} {
		if _, err := cuda.IPC.Open(ctx, 0, h, bad[0], bad[1], nil, 0, ended); !errors.Is(err, cuda.ErrRange) {
			return fmt.Errorf("%d bytes at %d: %w", bad[1], bad[0], err)
		}
	}
	if _, err := cuda.IPC.Open(ctx, 0, h, 0, 8, []byte("short"), 0, ended); !errors.Is(err, cuda.ErrRange) {
		return fmt.Errorf("a short event: %w", err)
	}
	if _, err := cuda.IPC.Open(ctx, 9, h, 0, 8, nil, 0, ended); !errors.Is(err, cuda.ErrDevice) {
		return fmt.Errorf("a device that this process does not see: %w", err)
	}
	return second.Close()
})

func TestLegacy_IsOpenedOnceAndWithinItsBounds(t *testing.T) {
	onDevices(t, 1, 64*mib)
	x, err := tensor.On(legacy(t)).Ones(tensor.Float32, 4)
	testutil.NoError(t, err)
	h, _, err := cuda.HandleOf(x)
	testutil.NoError(t, err)
	g, err := openAsOthers.Start(testutil.Context(t), 1, hex.EncodeToString(h[:]), shoal.Options{})
	testutil.NoError(t, err)
	testutil.NoError(t, g.Wait())
	testutil.NoError(t, x.Close())

	none, err := tensor.On(legacy(t)).Zeros(tensor.Float32, 0)
	testutil.NoError(t, err)
	device, h, _, event, done, err := cuda.IPC.Share(cuda.MemoryOf(none))
	if err != nil || device != 0 || h != ([64]byte{}) || event != nil || done() != nil {
		t.Errorf("nothing is shared by handle %x of device %d, %v", h, device, err)
	}
	ended := false
	m, err := cuda.IPC.Open(t.Context(), 0, h, 0, 0, nil, 0, func() error { ended = true; return nil })
	testutil.NoError(t, err)
	if m.Size() != 0 || ended {
		t.Errorf("nothing has %d bytes, ended %v", m.Size(), ended)
	}
	testutil.NoError(t, errors.Join(m.End(), none.Close()))
	if !ended {
		t.Error("nothing has not ended")
	}
}

// openOnBoth opens memory of another process on two devices, on one of them again.
var openOnBoth = shoal.Register("openOnBoth", func(ctx context.Context, _ int, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	open := func(ordinal int) (*tensor.Tensor, error) {
		d, err := cuda.Get(ordinal)
		if err != nil {
			return nil, err
		}
		return d.Open(ctx, [64]byte(b), 0, 16, nil)
	}
	first, err := open(0)
	if err != nil {
		return err
	}
	other, err := open(1)
	if err != nil {
		return err
	}
	cuda.Simulator().Fail("cuIpcOpenMemHandle", 1, cudriver.ErrorAlreadyMapped) // as old drivers say of a second time
	again, err := open(0)
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	if cuda.MemoryOf(first).Pointer() != cuda.MemoryOf(again).Pointer() {
		return errors.New("it is opened at two addresses of one device")
	}
	for _, x := range []*tensor.Tensor{first, other, again} {
		got := make([]byte, 4)
		err = errors.Join(err, cuda.MemoryOf(x).Read(got, 0), x.Close())
		if !slices.Equal(got, []byte{0, 0, 0x80, 0x3f}) {
			err = errors.Join(err, fmt.Errorf("%v reads %v", x.Device(), got))
		}
	}
	if n := cuda.Simulator().Open().Mappings; n != 0 {
		err = errors.Join(err, fmt.Errorf("%d mappings are left", n))
	}
	return err
})

// Where the other program numbers the devices otherwise, its memory is opened by one device that is
// another's. Each device opens it once.
func TestLegacy_EachDeviceOpensItOnce(t *testing.T) {
	simulate(t, 2, 64*mib)
	x, err := tensor.On(legacy(t)).Ones(tensor.Float32, 4)
	testutil.NoError(t, err)
	h, _, err := cuda.HandleOf(x)
	testutil.NoError(t, errors.Join(err, x.Device().Synchronize()))
	testutil.NoError(t, openOnBoth.Spawn(testutil.Context(t), 1, hex.EncodeToString(h[:])))
	testutil.NoError(t, x.Close())
}

func TestLegacy_WhatOthersCannotOpenIsNotSent(t *testing.T) {
	onDevices(t, 1, 64*mib)
	ctx, c, end := startDoubling(t)
	defer end()
	x, err := tensor.On(device(t, "cuda")).Ones(tensor.Float32, 2, 3)
	testutil.NoError(t, err)
	if err := c.Send(ctx, x); !errors.Is(err, cuda.ErrNotLegacy) {
		t.Errorf("memory of a segment: %v", err)
	}
	y, err := tensor.On(legacy(t)).Ones(tensor.Float32, 2, 3)
	testutil.NoError(t, err)
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	if err := q.Put(ctx, y); !errors.Is(err, cuda.ErrForeign) {
		t.Errorf("legacy memory in a queue: %v", err)
	}
	h, _, err := cuda.HandleOf(y)
	testutil.NoError(t, err)
	dev := device(t, "cuda").(*cuda.Device)
	if _, err := dev.Open(ctx, h, 0, 8, nil); !errors.Is(err, cuda.ErrorInvalidContext) {
		t.Errorf("opened where it was allocated: %v", err)
	}
	testutil.NoError(t, errors.Join(x.Close(), y.Close(), q.Close()))
}

// A message in PyTorch's form has an event, for which the receiver waits, and the sender does not.
// Where there can be none, the sender does.
func TestLegacy_AnEventGoesWithATensor(t *testing.T) {
	for name, waits := range map[string]bool{"event": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, 64*mib)
			ctx, c, end := startDoubling(t)
			defer end()
			x, err := tensor.On(legacy(t)).Zeros(tensor.Float32, 2, 3)
			testutil.NoError(t, err)
			d := cuda.Simulator()
			d.Hold(true)
			testutil.NoError(t, cuda.MemoryOf(x).Fill(0, x.Nbytes(), []byte{0, 0, 0x80, 0x3f}))
			if waits {
				d.Fail("cuIpcGetEventHandle", 1, cudriver.ErrorNotSupported)
				timer := time.AfterFunc(100*time.Millisecond, func() { d.Hold(false) })
				defer timer.Stop()
			}
			testutil.NoError(t, c.Send(ctx, x))
			if waits != d.Idle() {
				t.Errorf("the device has finished: %v", d.Idle())
			}
			time.AfterFunc(100*time.Millisecond, func() { d.Hold(false) }) // time for one who does not wait
			got, err := c.Recv(ctx)
			testutil.NoError(t, err)
			if got.(python.Tuple)[0] != 1.0 || got.(python.Tuple)[1] != 1.0 {
				t.Errorf("it did not wait: %v", got)
			}
			testutil.NoError(t, x.Close())
			eventually(t, func() string {
				out, err := torch.CollectCUDA()
				testutil.NoError(t, err)
				return []string{"it is back", "it is out"}[out]
			}, "it is back")
			if n := d.Open().Events; n != 0 {
				t.Errorf("%d events are left", n)
			}
		})
	}
}

// promiseAndDie sends a tensor in PyTorch's form behind work that its device never does, and is
// killed when it is told.
var promiseAndDie = shoal.Register("promiseAndDie", func(ctx context.Context, _ int, addr string) error {
	dev, err := cuda.Get(0)
	if err != nil {
		return err
	}
	x, err := tensor.On(cuda.LegacyDevice{Device: dev}).Zeros(tensor.Float32, 2, 3)
	if err == nil {
		err = dev.Synchronize()
	}
	if err != nil {
		return err
	}
	cuda.Simulator().Hold(true)
	if err := cuda.MemoryOf(x).Fill(0, x.Nbytes(), []byte{1}); err != nil {
		return err
	}
	c, err := torch.Dial(ctx, "unix", addr, torchOptions)
	if err == nil {
		err = c.Send(ctx, x)
	}
	if err != nil {
		return err
	}
	dieWithin(100 * time.Millisecond) // while the receiver waits
	<-ctx.Done()
	return ctx.Err()
})

// Nobody can end the wait of a stream for another program's event, and that of a dead process does
// not come. So it is the receiver that waits, beside the life of the sender, and the device does
// other things meanwhile and afterwards.
func TestLegacy_TheEventOfAKilledSenderIsAnError(t *testing.T) {
	for name, unknown := range map[string]bool{"sender is known": false, "sender is not": true} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, 64*mib)
			if unknown {
				t.Cleanup(cuda.EventsOfNobody(200 * time.Millisecond))
			}
			ctx := testutil.Context(t)
			l, err := torch.Listen("unix", t.TempDir()+"/socket", torchOptions)
			testutil.NoError(t, err)
			g, err := promiseAndDie.Start(ctx, 1, l.Addr(), shoal.Options{})
			testutil.NoError(t, err)
			c, err := l.Accept(ctx)
			testutil.NoError(t, errors.Join(err, l.Close()))
			dev := device(t, "cuda").(*cuda.Device)
			if _, err := c.Recv(ctx); !errors.Is(err, cuda.ErrUnfinished) {
				t.Errorf("received: %v", err)
			}
			y, err := tensor.On(dev).Ones(tensor.Float32, 3)
			testutil.NoError(t, errors.Join(err, dev.Synchronize()))
			testutil.NoError(t, y.Close())
			if open := cuda.Simulator().Open(); open.Events != 0 {
				t.Errorf("open are %+v", open)
			}
			died, ok := errors.AsType[*shoal.ProcessError](g.Wait())
			if !ok || died.Signal != syscall.SIGKILL {
				t.Errorf("the sender ended by itself: %v", died)
			}
			c.Close()
		})
	}
}

// promiseAndWait sends a tensor in PyTorch's form behind work that its device does not do until it
// is told, and says how many of its messages are out when it is told once more.
var promiseAndWait = shoal.Register("promiseAndWait", func(ctx context.Context, _ int, addr string) error {
	dev, err := cuda.Get(0)
	if err != nil {
		return err
	}
	x, err := tensor.On(cuda.LegacyDevice{Device: dev}).Zeros(tensor.Float32, 2, 3)
	if err = errors.Join(err, dev.Synchronize()); err != nil {
		return err
	}
	cuda.Simulator().Hold(true)
	if err := cuda.MemoryOf(x).Fill(0, x.Nbytes(), []byte{1}); err != nil {
		return err
	}
	c, err := torch.Dial(ctx, "unix", addr, torchOptions)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Send(ctx, x); err != nil {
		return err
	}
	if _, err := c.Recv(ctx); err != nil {
		return err
	}
	cuda.Simulator().Hold(false)
	if _, err := c.Recv(ctx); err != nil {
		return err
	}
	out, err := torch.CollectCUDA()
	return errors.Join(err, x.Close(), c.Send(ctx, out))
})

// A receiver waits no longer than its context for the event of a sender that lives, and takes its
// time. The next call receives the tensor.
func TestLegacy_TheContextEndsTheWaitForAnEvent(t *testing.T) {
	for name, unknown := range map[string]bool{"sender is known": false, "sender is not": true} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, 64*mib)
			if unknown {
				t.Cleanup(cuda.EventsOfNobody(time.Minute))
			}
			ctx := testutil.Context(t)
			l, err := torch.Listen("unix", t.TempDir()+"/socket", torchOptions)
			testutil.NoError(t, err)
			g, err := promiseAndWait.Start(ctx, 1, l.Addr(), shoal.Options{})
			testutil.NoError(t, err)
			c, err := l.Accept(ctx)
			testutil.NoError(t, errors.Join(err, l.Close()))
			device(t, "cuda")
			s := cuda.Simulator()
			enough := errors.New("waited enough")
			waiting, stop := context.WithCancelCause(ctx)
			go func() {
				for s.Open().Events == 0 && waiting.Err() == nil { // until it waits for the event
					time.Sleep(time.Millisecond)
				}
				stop(enough)
			}()
			if v, err := c.Recv(waiting); !errors.Is(err, enough) {
				t.Errorf("received: %v, %v", v, err)
			}
			testutil.NoError(t, c.Send(ctx, "go on"))
			v, err := c.Recv(ctx)
			x, ok := v.(*tensor.Tensor)
			if !ok || err != nil {
				t.Fatalf("received: %v, %v", v, err)
			}
			if got, err := x.CPU(); err != nil || !bytes.Equal(tensor.Bytes(got), bytes.Repeat([]byte{1}, 24)) {
				t.Errorf("the tensor has %v, %v", got, err)
			}
			testutil.NoError(t, x.Close())
			if open := s.Open(); open.Events != 0 || open.Mappings != 0 {
				t.Errorf("open are %+v", open)
			}
			testutil.NoError(t, c.Send(ctx, "and say"))
			if out, err := c.Recv(ctx); fmt.Sprint(out) != "0" || err != nil {
				t.Errorf("%v of the sender's messages are out, %v", out, err)
			}
			testutil.NoError(t, errors.Join(g.Wait(), c.Close()))
		})
	}
}
