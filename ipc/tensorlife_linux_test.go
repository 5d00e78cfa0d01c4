package ipc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkTensorLife makes a tensor of 64 bytes, puts it into a queue, gets it, and closes both:
// "close" closes the sender's last, "move" before the receiver has its own, as it is when the two
// are different processes, and "give" gives it away with the put.
func BenchmarkTensorLife(b *testing.B) {
	for _, how := range []string{"close", "move", "give"} {
		b.Run(how, func(b *testing.B) {
			ctx, q := context.Background(), newQueue[*tensor.Tensor](b, 8)
			b.ReportAllocs()
			for b.Loop() {
				if err := tensorLife(ctx, q, how); err != nil { // check would take longer than half of it
					b.Fatal(err)
				}
			}
		})
	}
}

func tensorLife(ctx context.Context, q *ipc.Queue[*tensor.Tensor], how string) error {
	t, err := tensor.EmptyShared(tensor.Uint8, 64)
	if err != nil {
		return err
	}
	if how == "give" {
		t.Give()
	}
	if err := q.Put(ctx, t); err != nil {
		return err
	}
	if how == "move" {
		t.Close()
	}
	got, err := q.Get(ctx)
	if err != nil {
		return err
	}
	if how == "close" {
		t.Close()
	}
	return got.Close()
}

// BenchmarkTensorRoundTrip sends a tensor of 64 bytes to another process and back: each side closes
// it after the put, or gives it away. Beside other work the mean is that of time slices, and the
// lowest hundredth of pairs of them is what one takes while both sides run.
func BenchmarkTensorRoundTrip(b *testing.B) {
	for _, give := range []bool{false, true} {
		name := "close"
		if give {
			name = "give"
		}
		b.Run(name, func(b *testing.B) {
			d := shared(b)
			ctx := b.Context()
			out, in := newQueue[*tensor.Tensor](b, 8), newQueue[*tensor.Tensor](b, 8)
			cmd := tensorEcho.start(b, d, &echoing{out.Receiver(), in.Sender(), give})
			t, err := tensor.NewShared(tensor.Uint8, 64)
			testutil.NoError(b, err)
			var pairs []time.Duration
			begin, n := time.Now(), 0
			for b.Loop() {
				if err = part(ctx, out.Sender(), t, give); err == nil {
					t, err = in.Get(ctx)
				}
				if err != nil {
					b.Fatal(err)
				}
				if n++; n%2 == 0 {
					now := time.Now()
					pairs = append(pairs, now.Sub(begin)/2)
					begin = now
				}
			}
			if slices.Sort(pairs); len(pairs) > 0 {
				b.ReportMetric(float64(pairs[len(pairs)/100].Nanoseconds()), "low-ns")
			}
			testutil.NoError(b, t.Close())
			testutil.NoError(b, out.Sender().Finish())
			testutil.NoError(b, cmd.Wait())
		})
	}
}

// part writes to a tensor, sends it, and lets go of it.
func part(ctx context.Context, q *ipc.Sender[*tensor.Tensor], t *tensor.Tensor, give bool) error {
	p := tensor.Data[uint8](t)
	p[0]++
	p[len(p)-1]++
	if give {
		t.Give()
	}
	if err := q.Put(ctx, t); err != nil || give {
		return err
	}
	return t.Close()
}

type echoing struct {
	In   *ipc.Receiver[*tensor.Tensor]
	Out  *ipc.Sender[*tensor.Tensor]
	Give bool
}

var tensorEcho = newRole("tensor echo", func(ctx context.Context, e *echoing) error {
	defer e.In.Close()
	defer e.Out.Close()
	for t, err := range e.In.All(ctx) {
		if err == nil {
			err = part(ctx, e.Out, t, e.Give)
		}
		if err != nil {
			return err
		}
	}
	return nil
})

// BenchmarkTensorStream gives fresh tensors of 64 bytes to another process, which closes them.
// Beside other work the lowest tenth of thousands of them is what one takes while both sides run.
func BenchmarkTensorStream(b *testing.B) {
	d := shared(b)
	ctx := b.Context()
	q := newQueue[*tensor.Tensor](b, 1024)
	cmd := tensorSink.start(b, d, q.Receiver())
	var thousands []time.Duration
	begin, n := time.Now(), 0
	for b.Loop() {
		t, err := tensor.EmptyShared(tensor.Uint8, 64)
		if err == nil {
			err = q.Put(ctx, t.Give())
		}
		if err != nil {
			b.Fatal(err)
		}
		if n++; n%1000 == 0 {
			now := time.Now()
			thousands = append(thousands, now.Sub(begin)/1000)
			begin = now
		}
	}
	if slices.Sort(thousands); len(thousands) > 0 {
		b.ReportMetric(float64(thousands[len(thousands)/10].Nanoseconds()), "low-ns")
	}
	testutil.NoError(b, q.Sender().Finish())
	testutil.NoError(b, cmd.Wait())
}

var tensorSink = newRole("tensor sink", func(ctx context.Context, in *ipc.Receiver[*tensor.Tensor]) error {
	defer in.Close()
	for t, err := range in.All(ctx) {
		if err == nil {
			err = t.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
})
