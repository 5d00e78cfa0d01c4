package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// An order is what the script says: what to do, how it shares, how many bytes, how often.
type order struct {
	_        struct{} `torch:",tuple"`
	Op       string
	Strategy string
	Size     int
	Rounds   int
}

// A sent tensor comes with the time at which its making began.
type sent struct {
	_     struct{} `torch:",tuple"`
	Begin int64
	T     *tensor.Tensor
}

// A follower is the other side of the script's connection.
type follower struct {
	ctx  context.Context
	conn *torch.Conn
	order
	opts torch.Options
}

// keptBuffers stay with PyTorch while only their numbers travel.
const keptBuffers = 4

func follow(ctx context.Context, args torch.Tuple, _ *torch.Dict) error {
	f := &follower{ctx: ctx, conn: args[0].(*torch.Conn)}
	for {
		next, err := torch.Recv[*order](ctx, f.conn)
		if err == io.EOF || err == nil && next == nil {
			return torch.Trim()
		}
		if err != nil {
			return err
		}
		f.order, f.opts = *next, torch.Options{}
		if f.Strategy == torch.FileSystem.String() {
			f.opts.Strategy = torch.FileSystem
		}
		do := map[string]func() error{"to": f.to, "from": f.from, "rtt": f.rtt, "kept": f.kept, "share": f.share}[f.Op]
		if do == nil {
			return fmt.Errorf("the script orders %q", f.Op)
		}
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", f.Op, err)
		}
	}
}

func (f *follower) empty() (*tensor.Tensor, error) { return f.opts.Empty(tensor.Int64, f.Size/8) }

// write writes every element.
func write(t *tensor.Tensor, i int) {
	x := tensor.Data[int64](t)
	for k := range x {
		x[k] = int64(i)
	}
}

// answered sends a message and waits for the script's.
func (f *follower) answered(v any) error {
	if err := f.conn.Send(f.ctx, v); err != nil {
		return err
	}
	_, err := f.conn.RecvBytes(f.ctx)
	return err
}

// to sends tensors that are made and written for it.
func (f *follower) to() error {
	for i := range f.Rounds {
		begin := sys.Monotonic()
		t, err := f.empty()
		if err != nil {
			return err
		}
		write(t, i)
		err = f.answered(torch.Tuple{int64(begin), t})
		t.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// kept writes buffers that PyTorch has, and sends which.
func (f *follower) kept() error {
	buffers := make([]*tensor.Tensor, keptBuffers)
	for i := range buffers {
		var err error
		if buffers[i], err = f.empty(); err != nil {
			return err
		}
		defer buffers[i].Close()
	}
	if err := f.conn.Send(f.ctx, buffers); err != nil {
		return err
	}
	for i := range f.Rounds {
		begin := sys.Monotonic()
		write(buffers[i%keptBuffers], i)
		if err := f.answered(torch.Tuple{int64(begin), i % keptBuffers}); err != nil {
			return err
		}
	}
	return nil
}

// drop looks at a tensor that was received, and lets it go.
func (s sent) drop(i int) error {
	defer s.T.Close()
	x := tensor.Data[int64](s.T)
	if x[0] != int64(i) || x[len(x)-1] != int64(i) {
		return fmt.Errorf("tensor %d has %d and %d", i, x[0], x[len(x)-1])
	}
	return nil
}

func (f *follower) from() error {
	for i := range f.Rounds {
		got, err := torch.Recv[sent](f.ctx, f.conn)
		if err != nil {
			return err
		}
		took := int64(sys.Monotonic()) - got.Begin
		if err := errors.Join(got.drop(i), f.conn.Send(f.ctx, took)); err != nil {
			return err
		}
	}
	return nil
}

// share is from, but says what processor time was spent here on receiving: what is waited for PyTorch does not count.
func (f *follower) share() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var spent time.Duration
	for i := range f.Rounds {
		began := sys.ThreadTime()
		got, err := torch.Recv[sent](f.ctx, f.conn)
		spent += sys.ThreadTime() - began
		if err != nil {
			return err
		}
		if err := errors.Join(got.drop(i), f.conn.Send(f.ctx, 0)); err != nil {
			return err
		}
	}
	return f.conn.Send(f.ctx, int64(spent))
}

// rtt sends back what it gets.
func (f *follower) rtt() error {
	for range f.Rounds {
		t, err := torch.Recv[*tensor.Tensor](f.ctx, f.conn)
		if err != nil {
			return err
		}
		x := tensor.Data[int64](t)
		x[0]++
		x[len(x)-1]++
		err = f.conn.Send(f.ctx, t)
		t.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
