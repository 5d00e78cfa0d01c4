package cuda_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var kills = flag.Int("cuda.kills", 64, "consumers that are killed")

// atOnce is how many of them live at the same time.
const atOnce = 8

// dieWithin kills this process at a moment of that time that nothing of what it does decides.
func dieWithin(d time.Duration) {
	time.AfterFunc(rand.N(d), func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
}

// starting is how long a simulated driver takes for its start, and for a context, as one of a GPU
// does: consumers that die sooner have received nothing.
const starting = 100 * time.Millisecond

// A meal is what a consumer gets.
type meal struct {
	Ends  ends
	Early bool           // it may die before it has received something
	Held  *tensor.Tensor // how many segments it has mapped when its time begins to run
}

// devour receives tensors, keeps them, makes its own and sends both on, until it is killed.
var devour = shoal.Register("devour", func(ctx context.Context, _ int, e meal) error {
	if e.Early {
		dieWithin(3 * starting)
	}
	var all []*tensor.Tensor
	for {
		x, err := e.Ends.In.Get(ctx)
		if err != nil {
			return err
		}
		mine, err := tensor.On(x.Device()).Ones(tensor.Float32, 1000)
		if err != nil {
			return err
		}
		if err := cuda.MemoryOf(x).Fill(0, 4, []byte{1}); err != nil {
			return err
		}
		if len(all) == 0 && !e.Early {
			tensor.Data[int64](e.Held)[0] = int64(cuda.Mapped())
			dieWithin(50 * time.Millisecond)
		}
		all = append(all, x, mine)
		for _, t := range all[len(all)-2:] {
			if err := e.Ends.Out.TryPut(t); err != nil && !errors.Is(err, ipc.ErrFull) {
				return err
			}
		}
	}
})

// Most consumers are killed while they have memory mapped, which they have said; one of each eight
// may be killed sooner.
func TestSegment_KilledConsumersLeaveNothing(t *testing.T) {
	if !*real {
		t.Setenv(sim.TimesKey, sim.Times{Init: starting, Context: starting}.String())
	}
	devices := onDevices(t, 1, 64<<30) // sparse: room for a segment of each, should they all be reaped late
	ctx := within(t, time.Minute+time.Duration(*kills)*time.Second/2)
	in, err := ipc.NewQueue[*tensor.Tensor](atOnce)
	testutil.NoError(t, err)
	out, err := ipc.NewQueue[*tensor.Tensor](atOnce)
	testutil.NoError(t, err)
	dev := device(t, "cuda")
	x, err := tensor.On(dev).Zeros(tensor.Float32, 1000, 1000)
	testutil.NoError(t, err)
	base, err := devices.Used(0)
	testutil.NoError(t, err)
	feed, stop := context.WithCancel(ctx)
	fed := make(chan error, 2)
	go func() { // each time another tensor, in the one segment
		for {
			y, err := tensor.On(dev).Ones(tensor.Float32, 10)
			if err == nil {
				err = errors.Join(in.Put(feed, y), y.Close())
			}
			if err != nil {
				fed <- err
				return
			}
		}
	}()
	go func() {
		for {
			y, err := out.Get(feed)
			if err == nil {
				err = y.Close()
			}
			if err != nil {
				fed <- err
				return
			}
		}
	}()
	held := 0
	for n := 0; n < *kills; n += atOnce {
		var groups [atOnce]*shoal.Group
		var mapped [atOnce]*tensor.Tensor
		for i := range groups {
			mapped[i] = tensor.FromSlice([]int64{0}, 1)
			testutil.NoError(t, mapped[i].Share())
			of := meal{ends{in.Receiver(), out.Sender()}, i == 0, mapped[i]}
			groups[i], err = devour.Start(ctx, 1, of, shoal.Options{})
			testutil.NoError(t, err)
		}
		for _, g := range groups {
			died, ok := errors.AsType[*shoal.ProcessError](g.Wait())
			if !ok || died.Signal != syscall.SIGKILL {
				t.Fatalf("a consumer ended by itself: %v", died)
			}
		}
		for _, m := range mapped {
			if tensor.Data[int64](m)[0] > 0 {
				held++
			}
			testutil.NoError(t, m.Close())
		}
	}
	rounds := (*kills + atOnce - 1) / atOnce
	if want := rounds * (atOnce - 1); held != want {
		t.Errorf("%d were killed with memory mapped, want %d of %d", held, want, rounds*atOnce)
	}
	stop()
	for range 2 {
		if err := <-fed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	for _, q := range []*ipc.Queue[*tensor.Tensor]{in, out} {
		testutil.NoError(t, q.Close())
	}
	d, err := arena.Default()
	testutil.NoError(t, err)
	eventually(t, func() string { return fmt.Sprint(d.Unreaped()) }, "false <nil>")
	comesTo(t, devices, 0, base)
	testutil.NoError(t, cuda.EmptyCache()) // the clock, of which this process has sent numbers
	testutil.NoError(t, x.Close())
	whole, err := tensor.On(dev).Empty(tensor.Float32, cuda.MappedBytes()/4) // every place in the segment is free again
	testutil.NoError(t, err)
	if n := cuda.Mapped(); n != 1 {
		t.Errorf("%d segments are mapped", n)
	}
	testutil.NoError(t, whole.Close())
}

// sendAndDie sends as much as it can until it is killed.
var sendAndDie = shoal.Register("sendAndDie", func(ctx context.Context, _ int, out *ipc.Sender[*tensor.Tensor]) error {
	dev, err := cuda.ForRank(0)
	if err != nil {
		return err
	}
	x, err := tensor.On(dev).Full(tensor.Float32, 7, 100)
	if err != nil {
		return err
	}
	if err := out.Put(ctx, x); err != nil {
		return err
	}
	dieWithin(4 * time.Millisecond)
	for {
		y, err := tensor.On(x.Device()).Full(tensor.Float32, 7, 100)
		if err == nil {
			err = errors.Join(out.Put(ctx, y), y.Close())
		}
		if err != nil {
			return err
		}
	}
})

// What a device had not written when its process was killed is an error, and nothing that looks
// like what was sent.
func TestSegment_WhatAKilledProducerSentIsWholeOrAnError(t *testing.T) {
	devices := onDevices(t, 1, 4<<30)
	ctx := testutil.Context(t)
	for range atOnce {
		q, err := ipc.NewQueue[*tensor.Tensor](64)
		testutil.NoError(t, err)
		g, err := sendAndDie.Start(ctx, 1, q.Sender(), shoal.Options{})
		testutil.NoError(t, err)
		died, ok := errors.AsType[*shoal.ProcessError](g.Wait())
		if !ok || died.Signal != syscall.SIGKILL {
			t.Fatalf("the producer ended by itself: %v", died)
		}
		got := 0
		for {
			x, err := q.TryGet()
			if errors.Is(err, ipc.ErrEmpty) {
				break
			}
			testutil.NoError(t, err)
			h, err := x.CPU()
			if !errors.Is(err, cuda.ErrUnfinished) {
				testutil.NoError(t, err)
				for _, v := range tensor.Data[float32](h) {
					if v != 7 {
						t.Fatalf("tensor %d: %v", got, h)
					}
				}
			}
			got++
			testutil.NoError(t, x.Close())
		}
		if got == 0 {
			t.Error("nothing of what was sent before the death is there")
		}
		testutil.NoError(t, q.Close())
	}
	comesTo(t, devices, 0, 0)
}
