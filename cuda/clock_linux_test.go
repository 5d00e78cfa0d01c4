package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// held are a queue of tensors, and what the sender waits for before its device may go on.
type held struct {
	Out *ipc.Sender[*tensor.Tensor]
	Go  *ipc.Receiver[bool]
}

// sendHeld sends what its device has not written yet: once that is allowed to go on if it gets
// true, and never if it gets false.
var sendHeld = shoal.Register("sendHeld", func(ctx context.Context, _ int, h held) error {
	dev, err := cuda.ForRank(0)
	if err != nil {
		return err
	}
	first, err := tensor.On(dev).Full(tensor.Float32, 6, 100)
	if err == nil {
		err = h.Out.Put(ctx, first)
	}
	if err == nil {
		err = dev.(*cuda.Device).Synchronize()
	}
	if err != nil {
		return err
	}
	cuda.Simulator().Hold(true)
	x, err := tensor.On(dev).Full(tensor.Float32, 7, 100)
	if err == nil {
		err = h.Out.Put(ctx, x) // returns, though nothing is written
	}
	if err != nil {
		return err
	}
	on, err := h.Go.Get(ctx)
	if err != nil {
		return err
	}
	if !on {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	cuda.Simulator().Hold(false)
	return nil // which waits for the device
})

// startHeld starts sendHeld, and returns the tensor that is not written yet.
func startHeld(t *testing.T) (ctx context.Context, x *tensor.Tensor, g *shoal.Group, on *ipc.Queue[bool]) {
	t.Helper()
	ctx, q, g, on := startSending(t)
	x, err := q.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, q.Close())
	return ctx, x, g, on
}

// startSending starts sendHeld, and returns the queue in which the tensor is that is not written
// yet, or will be.
func startSending(t *testing.T) (ctx context.Context, q *ipc.Queue[*tensor.Tensor], g *shoal.Group,
	on *ipc.Queue[bool]) {
	t.Helper()
	room, err := tensor.On(simulated(t)).Empty(tensor.Float32, 100) // mapping a segment waits for the device
	testutil.NoError(t, err)
	testutil.NoError(t, room.Close())
	ctx = testutil.Context(t)
	q, err = ipc.NewQueue[*tensor.Tensor](2)
	testutil.NoError(t, err)
	on, err = ipc.NewQueue[bool](1)
	testutil.NoError(t, err)
	g, err = sendHeld.Start(ctx, 1, held{q.Sender(), on.Receiver()}, shoal.Options{})
	testutil.NoError(t, err)
	first, err := q.Get(ctx)
	testutil.NoError(t, err)
	if got := onHost(t, first); got[99] != 6 {
		t.Errorf("what the device had written: %v", got)
	}
	testutil.NoError(t, first.Close())
	t.Cleanup(func() { testutil.NoError(t, on.Close()) })
	return ctx, q, g, on
}

// change changes a tensor by work that has not been done when it returns, and closes nothing.
var change = shoal.Register("change", func(_ context.Context, _ int, x *tensor.Tensor) error {
	hold(true)
	time.AfterFunc(10*time.Millisecond, func() { hold(false) })
	return cuda.MemoryOf(x).Fill(0, x.Nbytes(), []byte{0, 0, 0xe0, 0x40})
})

func TestClock_AProcessThatEndsFinishesItsWork(t *testing.T) {
	x, err := tensor.On(onDevice(t)).Ones(tensor.Float32, 100)
	testutil.NoError(t, err)
	testutil.NoError(t, change.Spawn(testutil.Context(t), 1, x))
	if got := onHost(t, x); got[0] != 7 || got[99] != 7 {
		t.Errorf("%v", got)
	}
	testutil.NoError(t, x.Close())
}

func TestClock_TheReceiversStreamWaitsAndNotItsHost(t *testing.T) {
	ctx, x, g, on := startHeld(t)
	y, err := tensor.On(x.Device()).Empty(tensor.Float32, 100)
	testutil.NoError(t, err)
	testutil.NoError(t, cuda.MemoryOf(y).Copy(0, cuda.MemoryOf(x), 0, x.Nbytes())) // queued behind what is not written
	testutil.NoError(t, on.Put(ctx, true))
	if got := onHost(t, y); got[0] != 7 || got[99] != 7 {
		t.Errorf("copied before it was written: %v", got)
	}
	testutil.NoError(t, g.Wait())
	testutil.NoError(t, x.Close())
	testutil.NoError(t, y.Close())
}

func TestClock_AKilledSendersTensorIsAnError(t *testing.T) {
	ctx, x, g, on := startHeld(t)
	y, err := tensor.On(x.Device()).Empty(tensor.Float32, 100)
	testutil.NoError(t, err)
	testutil.NoError(t, cuda.MemoryOf(y).Copy(0, cuda.MemoryOf(x), 0, x.Nbytes()))
	testutil.NoError(t, on.Put(ctx, false))
	if died, ok := errors.AsType[*shoal.ProcessError](g.Wait()); !ok || died.Signal != syscall.SIGKILL {
		t.Fatalf("the sender ended by itself: %v", died)
	}
	if _, err := y.CPU(); !errors.Is(err, cuda.ErrUnfinished) { // what was made of it
		t.Errorf("%v", err)
	}
	for range 2 {
		if _, err := x.CPU(); !errors.Is(err, cuda.ErrUnfinished) {
			t.Errorf("%v", err)
		}
	}
	if _, err := y.CPU(); err != nil { // said once: the device goes on
		t.Error(err)
	}
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	if err := q.Put(ctx, x); !errors.Is(err, cuda.ErrUnfinished) {
		t.Errorf("sent on: %v", err)
	}
	testutil.NoError(t, q.Close())
	testutil.NoError(t, x.Close())
	testutil.NoError(t, y.Close())
}

func TestClock_ClosingWhatWasLostDoesNotHideIt(t *testing.T) {
	ctx, x, g, on := startHeld(t)
	y, err := tensor.On(x.Device()).Empty(tensor.Float32, 100)
	testutil.NoError(t, err)
	testutil.NoError(t, cuda.MemoryOf(y).Copy(0, cuda.MemoryOf(x), 0, x.Nbytes()))
	testutil.NoError(t, on.Put(ctx, false))
	g.Wait()
	testutil.NoError(t, x.Close())
	if _, err := y.CPU(); !errors.Is(err, cuda.ErrUnfinished) {
		t.Errorf("%v", err)
	}
	testutil.NoError(t, y.Close())
}

// sendSomething lets a process have the clock that it makes when it sends first, which the device
// must do something for.
func sendSomething(ctx context.Context, x *tensor.Tensor) error {
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	if err != nil {
		return err
	}
	return errors.Join(q.Put(ctx, x), q.Close())
}

// sendBack sends what it received, with something to do for its device that has not begun.
var sendBack = shoal.Register("sendBack", func(ctx context.Context, _ int, e ends) error {
	x, err := e.In.Get(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	// nobody could look whether it was written while the device is held
	if err := x.Device().(*cuda.Device).Synchronize(); err != nil {
		return err
	}
	if err := sendSomething(ctx, x); err != nil {
		return err
	}
	hold(true)
	defer hold(false)
	return errors.Join(cuda.MemoryOf(x).Fill(0, x.Nbytes(), []byte{0}), e.Out.Put(ctx, x))
})

// Memory of this process may come back with the clock of another, which goes with it.
func TestClock_GoesWithWhatItCameWith(t *testing.T) {
	onDevices(t, 1, 256*mib)
	ctx := testutil.Context(t)
	in, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	out, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	x, err := tensor.On(device(t, "cuda")).Ones(tensor.Float32, 100)
	testutil.NoError(t, err)
	testutil.NoError(t, in.Put(ctx, x))
	g, err := sendBack.Start(ctx, 1, ends{in.Receiver(), out.Sender()}, shoal.Options{})
	testutil.NoError(t, err)
	y, err := out.Get(ctx)
	testutil.NoError(t, err)
	if !y.SameStorage(x) {
		t.Error("what comes back is another storage")
	}
	testutil.NoError(t, errors.Join(y.Close(), x.Close(), g.Wait(), in.Close(), out.Close()))
	eventually(t, func() string { return fmt.Sprintf("%d segments are mapped", cuda.Mapped()) },
		"1 segments are mapped")
}

func TestClock_WithoutNumbersTheSenderWaits(t *testing.T) {
	for name, fault := range map[string]struct {
		call string
		r    cudriver.Result
	}{
		"cuStreamWriteValue32": {"cuStreamWriteValue32", cudriver.ErrorNotSupported},
		"cuMemHostRegister":    {"cuMemHostRegister", cudriver.ErrorNotPermitted},
		"another library has registered the page": {"cuMemHostRegister",
			cudriver.ErrorHostMemoryAlreadyRegistered},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := tensor.On(simulated(t)).Zeros(tensor.Float32, 100)
			testutil.NoError(t, err)
			q, err := ipc.NewQueue[*tensor.Tensor](2)
			testutil.NoError(t, err)
			d := cuda.Simulator()
			d.Fail(fault.call, 1, fault.r)
			for range 2 { // and is not asked again
				d.Hold(true)
				testutil.NoError(t, cuda.MemoryOf(x).Fill(0, x.Nbytes(), []byte{0}))
				timer := time.AfterFunc(50*time.Millisecond, func() { d.Hold(false) })
				testutil.NoError(t, q.Put(testutil.Context(t), x))
				timer.Stop()
				if !d.Idle() {
					t.Error("Put has returned, and the device is not ready")
				}
				y, err := q.TryGet()
				testutil.NoError(t, err)
				testutil.NoError(t, y.Close())
			}
			testutil.NoError(t, errors.Join(x.Close(), q.Close()))
		})
	}
}

// A receiver whose driver registers no shared memory waits on the host, also for a sender that
// dies.
func TestClock_WithoutItsPageTheReceiverWaits(t *testing.T) {
	for name, lives := range map[string]bool{"the sender lives": true, "the sender is killed": false} {
		t.Run(name, func(t *testing.T) {
			ctx, q, g, on := startSending(t)
			testutil.NoError(t, tensor.EmptyCache()) // the clock, if the first tensor was waited for
			go func() {
				time.Sleep(20 * time.Millisecond) // in most runs while the receiver waits
				on.Put(ctx, lives)
			}()
			cuda.Simulator().Fail("cuMemHostRegister", 1, cudriver.ErrorNotPermitted)
			x, err := q.Get(ctx)
			testutil.NoError(t, err)
			wantPinned(t, "a clock that cannot be registered has come", 0)
			if h, err := x.CPU(); lives && (err != nil || tensor.At[float32](h, 99) != 7) ||
				!lives && !errors.Is(err, cuda.ErrUnfinished) {
				t.Errorf("%v, %v", h, err)
			}
			g.Wait()
			testutil.NoError(t, errors.Join(x.Close(), q.Close()))
		})
	}
}

// A clock may come to lie where something else was, which must not be taken for a number.
func TestClock_BeginsAtZero(t *testing.T) {
	dev := simulated(t)
	keep, err := tensor.On(dev).Zeros(tensor.Int32, 1)
	testutil.NoError(t, err)
	testutil.NoError(t, dev.(*cuda.Device).Synchronize())
	for range 8 { // of the size of a clock, which comes to lie where one of them was
		x, err := tensor.NewShared(tensor.Int32, os.Getpagesize()/4)
		testutil.NoError(t, err)
		for i := range tensor.Data[int32](x) {
			tensor.Data[int32](x)[i] = 1<<30 + 7
		}
		testutil.NoError(t, x.Close())
	}
	testutil.NoError(t, tensor.EmptyCache())
	d := cuda.Simulator()
	d.Hold(true)
	defer d.Hold(false)
	testutil.NoError(t, cuda.MemoryOf(keep).Fill(0, 4, []byte{0}))
	testutil.NoError(t, sendSomething(testutil.Context(t), keep))
	if d.Idle() {
		t.Error("the sender has waited for its device")
	}
	now, err := cuda.Clock(dev.(*cuda.Device))
	if now != 0 || err != nil {
		t.Errorf("it begins at %d, %v", now, err)
	}
	d.Hold(false)
	testutil.NoError(t, dev.(*cuda.Device).Synchronize())
	if now, err = cuda.Clock(dev.(*cuda.Device)); now != 1 || err != nil {
		t.Errorf("when the device has done it, it is %d, %v", now, err)
	}
	testutil.NoError(t, keep.Close())
}

// Each of these may wait for the device, which waits for a process that was killed: also where all
// streams stand in one queue of the hardware.
func TestClock_NothingHangsWhereASenderWasKilled(t *testing.T) {
	for _, connections := range []string{"1", "8"} {
		t.Run(connections+" queues", func(t *testing.T) {
			t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections)
			nothingHangs(t)
		})
	}
}

func nothingHangs(t *testing.T) {
	for name, use := range map[string]func(x *tensor.Tensor) error{
		"a copy from the host": func(x *tensor.Tensor) error { return on(x).Write(0, make([]byte, 4)) },
		"a kernel that is new": func(x *tensor.Tensor) error {
			tensor.Exp(x).Close()
			return on(x).Read(make([]byte, 4), 0)
		},
		"much work": func(x *tensor.Tensor) (err error) {
			for range 3000 {
				err = errors.Join(err, on(x).Fill(0, 4, []byte{1}))
			}
			return errors.Join(err, on(x).Read(make([]byte, 4), 0))
		},
		"much work that is products": func(x *tensor.Tensor) (err error) {
			m := x.View(10, 10)
			for range 500 {
				err = errors.Join(err, tensor.MatMul(m, m).Close())
			}
			return errors.Join(err, m.Close(), on(x).Read(make([]byte, 4), 0))
		},
		"a product that is new": func(x *tensor.Tensor) error {
			m := x.View(5, 20)
			y := m.T()
			return errors.Join(tensor.MatMul(m, y).Close(), y.Close(), m.Close(), on(x).Read(make([]byte, 4), 0))
		},
		"memory that is mapped": func(x *tensor.Tensor) error {
			y, err := tensor.On(x.Device()).Empty(tensor.Float32, 2*mib) // as large as a segment
			if err == nil {
				err = errors.Join(y.Close(), cuda.EmptySegments()) // and unmapped
			}
			return errors.Join(err, on(x).Read(make([]byte, 4), 0))
		},
		"a stream beside": func(x *tensor.Tensor) error {
			s, err := x.Device().(*cuda.Device).NewStream()
			if err != nil {
				return err
			}
			e, err := s.Record()
			if err == nil {
				err = errors.Join(e.Synchronize(), s.Synchronize(), s.Close())
			}
			return errors.Join(err, on(x).Read(make([]byte, 4), 0))
		},
		"many goroutines": func(x *tensor.Tensor) error {
			errs := make(chan error)
			for range 8 {
				go func() {
					var err error
					for range 500 {
						err = errors.Join(err, on(x).Fill(0, 4, []byte{1}))
					}
					errs <- err
				}()
			}
			var err error
			for range 8 {
				err = errors.Join(err, <-errs)
			}
			return errors.Join(err, on(x).Read(make([]byte, 4), 0))
		},
		"memory for others": func(x *tensor.Tensor) error {
			y, err := tensor.On(legacy(t)).Empty(tensor.Float32, 1)
			if err == nil {
				err = y.Close()
			}
			return errors.Join(err, on(x).Read(make([]byte, 4), 0))
		},
		"pages that are locked": func(x *tensor.Tensor) error {
			p, err := tensor.NewShared(tensor.Float32, 4096)
			if err != nil {
				return err
			}
			pinned, err := x.Device().(*cuda.Device).Pin(p)
			if err == nil {
				err = pinned.Close()
			}
			return errors.Join(err, p.Close(), on(x).Read(make([]byte, 4), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, x, g, on := startHeld(t)
			testutil.NoError(t, on.Put(ctx, false))
			if err := use(x); !errors.Is(err, cuda.ErrUnfinished) {
				t.Errorf("%v", err)
			}
			g.Wait()
			testutil.NoError(t, x.Close())
		})
	}
}

// The device of a killed process may write a number when others have seen the process end, and so
// take away the mark that ends their waits: before their stream has come to it.
func TestClock_ALateNumberOfAKilledSenderHangsNobody(t *testing.T) {
	ctx, x, g, on := startHeld(t)
	s, dev := cuda.Simulator(), x.Device().(*cuda.Device)
	s.Hold(true)
	testutil.NoError(t, on.Put(ctx, false))
	g.Wait()
	numbers := cuda.AwaitedNumbers(dev)
	if len(numbers) != 1 {
		t.Fatalf("the stream waits for %d numbers", len(numbers))
	}
	marked := func() string { return fmt.Sprintf("marked: %v", numbers[0].Load()&cuda.Abandoned != 0) }
	for range 3 {
		eventually(t, marked, "marked: true")
		numbers[0].Store(numbers[0].Load() &^ cuda.Abandoned) // a number that comes before the one that is awaited
	}
	s.Hold(false)
	if _, err := x.CPU(); !errors.Is(err, cuda.ErrUnfinished) {
		t.Errorf("%v", err)
	}
	testutil.NoError(t, x.Close())
}

// What was closed the device may still have to do something with.
func TestMemory_IsGivenBackWhenTheDeviceHasDone(t *testing.T) {
	dev := simulated(t)
	x, err := tensor.On(dev).Zeros(tensor.Float32, 1)
	testutil.NoError(t, err)
	d := cuda.Simulator()
	d.Hold(true)
	testutil.NoError(t, cuda.MemoryOf(x).Fill(0, 4, []byte{1}))
	testutil.NoError(t, x.Close())
	timer := time.AfterFunc(100*time.Millisecond, func() { d.Hold(false) })
	defer timer.Stop()
	testutil.NoError(t, cuda.EmptySegments())
	testutil.NoError(t, dev.(*cuda.Device).Synchronize())
}
