package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// An order is a request of the Python script: the operation, the sharing strategy, the tensor size
// in bytes and the number of rounds.
type order struct {
	_        struct{} `torch:",tuple"`
	Op       string
	Strategy string
	Size     int
	Rounds   int
}

// A sent is a tensor with the monotonic time at which its sender began to create it, in
// nanoseconds.
type sent struct {
	_     struct{} `torch:",tuple"`
	Begin int64
	T     *tensor.Tensor
}

// A follower executes the orders that arrive on one connection, one after another. Its methods
// other than executeOrder and close are parts of an order.
type follower struct {
	ctx  context.Context
	conn *torch.Conn
	order
	opts    torch.Options
	started *torch.Process // Python process that this one started, for orders with startedPrefix
}

// keptBuffers is the number of buffers that PyTorch keeps mapped in the operation "kept". Only
// their indices are sent.
const keptBuffers = 4

func followScript(ctx context.Context, args python.Tuple, _ *python.Dict) error {
	f := &follower{ctx: ctx, conn: args[0].(*torch.Conn)}
	for {
		err := f.executeOrder()
		if err == io.EOF {
			return errors.Join(f.close(), torch.Trim())
		}
		if err != nil {
			return err
		}
	}
}

// executeOrder receives and executes one order. It returns [io.EOF] if the script sent None.
func (f *follower) executeOrder() error {
	next, err := torch.As[*order](f.conn.Recv(f.ctx))
	if err == nil && next == nil {
		err = io.EOF
	}
	if err != nil {
		return err
	}
	f.order, f.opts = *next, torch.Options{}
	if f.Strategy == string(torch.FileSystem) {
		f.opts.Strategy = torch.FileSystem
	}
	do := map[string]func() error{"to": f.sendTensors, "from": f.receiveTensors, "rtt": f.echoTensors,
		"kept": f.sendBuffers, "share": f.measureReceive}[f.Op]
	if strings.HasPrefix(f.Op, startedPrefix) {
		do = f.runWithSpawned
	}
	if do == nil {
		return fmt.Errorf("unknown order %q from the script", f.Op)
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", f.Op, err)
	}
	return nil
}

// startedPrefix marks operations that must run against a Python process started by this one.
const startedPrefix = "spawn_"

// A script identifies the Python interpreter and the file to run.
type script struct {
	_      struct{} `torch:",tuple"`
	Python string
	Path   string
}

// runWithSpawned executes an order together with the Python function "spawned" of the script, which
// it starts in a new process if it is not running yet. It forwards the order to that function,
// executes the Go side, and sends the time that the function measured to the script.
func (f *follower) runWithSpawned() error {
	s, err := torch.As[script](f.conn.Recv(f.ctx))
	if err != nil {
		return err
	}
	if f.started == nil {
		if f.started, err = (torch.Python{Path: s.Python, Dir: filepath.Dir(s.Path)}).Spawn(f.ctx,
			s.Path+":spawned"); err != nil {
			return err
		}
	}
	of := &follower{ctx: f.ctx, conn: f.started.Conn}
	op := strings.TrimPrefix(f.Op, startedPrefix)
	if err := of.conn.Send(f.ctx, python.Tuple{op, f.Strategy, f.Size, f.Rounds}); err != nil {
		return err
	}
	if err := of.executeOrder(); err != nil {
		return err
	}
	took, err := torch.As[float64](of.conn.Recv(f.ctx))
	if err != nil {
		return err
	}
	return f.conn.Send(f.ctx, took)
}

func (f *follower) close() error {
	if f.started == nil {
		return nil
	}
	return f.started.Close()
}

func (f *follower) newTensor() (*tensor.Tensor, error) { return f.opts.Empty(tensor.Int64, f.Size/8) }

// exchangeMessage sends a message and waits for the script's reply, which it discards.
func (f *follower) exchangeMessage(v any) error {
	if err := f.conn.Send(f.ctx, v); err != nil {
		return err
	}
	_, err := f.conn.RecvBytes(f.ctx)
	return err
}

// sendTensors creates, fills and sends one tensor per round, with the monotonic time before its
// creation.
func (f *follower) sendTensors() error {
	for i := range f.Rounds {
		begin := sys.Monotonic()
		t, err := f.newTensor()
		if err != nil {
			return err
		}
		t.Fill(float64(i))
		err = f.exchangeMessage(python.Tuple{int64(begin), t})
		t.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// sendBuffers sends keptBuffers buffers once. In each round it fills one of them and sends its
// index with the monotonic time before. All buffers are written before the first round, so that
// no round pays for page faults.
func (f *follower) sendBuffers() error {
	buffers := make([]*tensor.Tensor, keptBuffers)
	for i := range buffers {
		var err error
		if buffers[i], err = f.newTensor(); err != nil {
			return err
		}
		defer buffers[i].Close()
		buffers[i].Zero()
	}
	if err := f.conn.Send(f.ctx, buffers); err != nil {
		return err
	}
	for i := range f.Rounds {
		begin := sys.Monotonic()
		buffers[i%keptBuffers].Fill(float64(i))
		if err := f.exchangeMessage(python.Tuple{int64(begin), i % keptBuffers}); err != nil {
			return err
		}
	}
	return nil
}

// receiveTensor receives tensor i and checks its first and last element, which must be i. It
// returns the monotonic time of arrival in nanoseconds. The caller must close the tensor; the
// time for closing is not part of the measurement.
func (f *follower) receiveTensor(i int) (got sent, at int64, err error) {
	got, err = torch.As[sent](f.conn.Recv(f.ctx))
	if err != nil {
		return got, 0, err
	}
	at = int64(sys.Monotonic())
	x := tensor.Data[int64](got.T)
	if x[0] != int64(i) || x[len(x)-1] != int64(i) {
		err = fmt.Errorf("tensor %d: got first element %d and last element %d, want both equal to its number",
			i, x[0], x[len(x)-1])
	}
	return got, at, err
}

func (f *follower) receiveTensors() error {
	for i := range f.Rounds {
		got, at, err := f.receiveTensor(i)
		if err != nil {
			return err
		}
		got.T.Close()
		if err := f.conn.Send(f.ctx, at-got.Begin); err != nil {
			return err
		}
	}
	return nil
}

// measureReceive receives one tensor per round. In the end it sends the script the processor time
// of this whole process, in nanoseconds, between waiting for each message and having its tensor.
// The time that PyTorch spends is not counted.
func (f *follower) measureReceive() error {
	var spent time.Duration
	for i := range f.Rounds {
		began := sys.ProcessTime()
		got, _, err := f.receiveTensor(i)
		spent += sys.ProcessTime() - began
		if err != nil {
			return err
		}
		got.T.Close()
		if err := f.conn.Send(f.ctx, 0); err != nil {
			return err
		}
	}
	return f.conn.Send(f.ctx, int64(spent))
}

// echoTensors increments two elements of each received tensor and sends it back.
func (f *follower) echoTensors() error {
	for range f.Rounds {
		t, err := torch.As[*tensor.Tensor](f.conn.Recv(f.ctx))
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
