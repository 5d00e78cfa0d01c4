package tcp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	public "github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// budget is so small that a test can use it up.
const budget = 512 << 20

func TestMain(m *testing.M) {
	if addr := os.Getenv(senderVar); addr != "" {
		if err := sendTo(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := shoal.SetMemory(public.Options{Budget: budget}); err != nil {
		panic(err)
	}
	shoaltest.TestMain(m)
}

var key = []byte("sixteen bytes, or more")

func listenStream[T any](t *testing.T, opts ...tcp.Options) *ipc.Listener[T] {
	t.Helper()
	l, err := ipc.ListenWith[T]("tcp://127.0.0.1:0", key, ipc.MeetingOptions{Transport: only(opts)})
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, l.Close()) })
	return l
}

// only returns the options of a test, or none.
func only(opts []tcp.Options) tcp.Options {
	if len(opts) == 0 {
		return tcp.Options{}
	}
	return opts[0]
}

// pair returns the two ends of a connection.
func pair[T any](t *testing.T, opts ...tcp.Options) (a, b *ipc.Conn[T]) {
	t.Helper()
	ctx := testutil.Context(t)
	l := listenStream[T](t, opts...)
	b, err := ipc.DialWith[T](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: only(opts)})
	testutil.NoError(t, err)
	a, err = l.Accept(ctx)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, errors.Join(a.Close(), b.Close())) })
	return a, b
}

// blocksCome waits until the domain has no more than n blocks.
func blocksCome(t *testing.T, n int) {
	t.Helper()
	d, err := arena.Default()
	testutil.NoError(t, err)
	testutil.EventuallyNoError(t, func() error {
		if d.Stats().Blocks > n {
			return fmt.Errorf("%d blocks, of %d before", d.Stats().Blocks, n)
		}
		return nil
	})
}

func blocks(t *testing.T) int {
	t.Helper()
	d, err := arena.Default()
	testutil.NoError(t, err)
	return d.Stats().Blocks
}

// send sends v, and receives it at the other end.
func send[T any](t *testing.T, ctx context.Context, from, to *ipc.Conn[T], v T) T {
	t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- from.Send(ctx, v) }()
	got, err := to.Recv(ctx)
	testutil.NoError(t, errors.Join(err, <-sent))
	return got
}

func same(t *testing.T, got, want *tensor.Tensor) {
	t.Helper()
	if !tensor.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestConn_TensorsAreCopied(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[*tensor.Tensor](t)
	if a.Shared() || b.Shared() {
		t.Error("two machines share memory")
	}
	g := tensor.NewGenerator(1)
	whole := tensor.RandN(tensor.Float32, g, 40, 30)
	path := filepath.Join(t.TempDir(), "mapped")
	mapped, err := tensor.FromFileShared(path, tensor.Int16, 7, 5)
	testutil.NoError(t, err)
	mapped.CopyFrom(tensor.RandInt(g, 0, 100, 7, 5))
	for name, x := range map[string]*tensor.Tensor{
		"whole": whole, "transposed": whole.T(), "a narrow part": whole.Narrow(0, 20, 1),
		"most of it": whole.Narrow(0, 5, 33), "a column": whole.Narrow(1, 3, 1),
		"expanded": whole.Narrow(0, 0, 1).Expand(1000, 30), "of no elements": tensor.New(tensor.Float64, 3, 0),
		"a number": tensor.Full(tensor.Int64, 7), "half": whole.To(tensor.BFloat16), "in a file": mapped,
		"of whole numbers": tensor.RandInt(g, 0, 9, 3, 4, 5),
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, ctx, a, b, x)
			defer got.Close()
			same(t, got, x)
			if got.Numel() > 0 && got.DType() == tensor.Float32 && name == "whole" {
				first := got.Clone()
				tensor.Data[float32](x)[0]++
				same(t, got, first) // what the sender writes is not seen
			}
		})
	}
	whole.Close()
	mapped.Close()
}

// A body ends at 64 MiB; a tensor does not.
func TestConn_TensorOfMoreThanAFrame(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[*tensor.Tensor](t)
	before := blocks(t)
	x, err := tensor.NewShared(tensor.Uint8, 97<<20+13)
	testutil.NoError(t, err)
	bytes := tensor.Data[uint8](x)
	for i := 0; i < len(bytes); i += 997 {
		bytes[i] = byte(i / 997)
	}
	got := send(t, ctx, a, b, x)
	same(t, got, x)
	testutil.NoError(t, errors.Join(x.Close(), got.Close()))
	blocksCome(t, before)
}

// Two views of one storage are two views of one storage at the other end.
func TestConn_ViewsStayViews(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[[2]*tensor.Tensor](t)
	x := tensor.Arange(tensor.Float32, 0, 100, 1)
	got := send(t, ctx, a, b, [2]*tensor.Tensor{x, x.Narrow(0, 10, 80)})
	tensor.Data[float32](got[0])[10] = -1
	if v := tensor.Data[float32](got[1])[0]; v != -1 {
		t.Errorf("%v: the two have different storages", v)
	}
	x.Close()
	got[0].Close()
	got[1].Close()
}

func TestConn_WhatIsNoMemoryIsRefused(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[any](t)
	f, err := os.Open(os.DevNull)
	testutil.NoError(t, err)
	defer f.Close()
	testutil.ErrorIs(t, a.Send(ctx, f), ipc.ErrShared)
	if got := send(t, ctx, a, b, any(5)); got != 5 { // the connection goes on
		t.Errorf("%v", got)
	}
}

// A receiver without room says so, and receives the next value.
func TestConn_ReceiverWithoutBudget(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[*tensor.Tensor](t)
	before := blocks(t)
	big, err := tensor.NewShared(tensor.Uint8, budget*5/8)
	testutil.NoError(t, err)
	sent := make(chan error, 1)
	go func() { sent <- a.Send(ctx, big) }()
	_, err = b.Recv(ctx)
	testutil.NoError(t, <-sent)
	testutil.ErrorIs(t, err, arena.ErrNoSpace)
	testutil.ErrorContains(t, err, "127.0.0.1", "raise Budget")
	small := tensor.Arange(tensor.Int32, 0, 10, 1)
	got := send(t, ctx, a, b, small)
	same(t, got, small)
	testutil.NoError(t, errors.Join(got.Close(), big.Close(), small.Close()))
	blocksCome(t, before)
}

// The sender waits while nobody receives, and its context ends that.
func TestConn_SenderWaitsForTheReceiver(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[*tensor.Tensor](t)
	x, err := tensor.NewShared(tensor.Uint8, 64<<20)
	testutil.NoError(t, err)
	defer x.Close()
	short, cancel := context.WithCancel(ctx)
	sent := make(chan error, 1)
	go func() { sent <- a.Send(short, x) }()
	testutil.NoError(t, b.Poll(ctx)) // the first of it is here, and the rest has no room on the way
	cancel()
	testutil.ErrorIs(t, <-sent, context.Canceled)
	_, err = b.Recv(ctx)
	testutil.ErrorIs(t, err, ipc.ErrClosed, io.ErrUnexpectedEOF)
}

func TestDial_OfAnotherKeyIsRefused(t *testing.T) {
	ctx := testutil.Context(t)
	l := listenStream[int](t)
	_, err := ipc.Dial[int](ctx, l.Addr(), []byte("a guess"))
	testutil.ErrorIs(t, err, ipc.ErrKey)
	testutil.ErrorContains(t, err, l.Addr())
	_, err = ipc.Dial[string](ctx, l.Addr(), key)
	testutil.ErrorIs(t, err, ipc.ErrType)
	_, err = ipc.Listen[int]("tcp://127.0.0.1:0", nil)
	testutil.ErrorIs(t, err, ipc.ErrKey)
	_, err = ipc.Dial[int](ctx, "udp://127.0.0.1:1", key)
	testutil.ErrorIs(t, err, errors.ErrUnsupported)
	testutil.ErrorContains(t, err, "tcp://")
}

func TestDial_WhatIsNoPeerIsNamed(t *testing.T) {
	ctx := testutil.Context(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			c.Close()
		}
	}()
	_, err = ipc.Dial[int](ctx, "tcp://"+l.Addr().String(), key)
	testutil.ErrorIs(t, err, ipc.ErrPeer)
	testutil.ErrorContains(t, err, l.Addr().String())
}

// A liar knows the key, and says what it likes.
type liar struct {
	s    *secure.Conn
	conn *link.Conn
}

// lie returns a connection of which the other end is a liar.
func lie(t *testing.T) (*ipc.Conn[*tensor.Tensor], liar) {
	t.Helper()
	ctx := testutil.Context(t)
	l := listenStream[*tensor.Tensor](t)
	s, err := secure.Dial(ctx, strings.TrimPrefix(l.Addr(), "tcp://"), secure.Options{Key: key})
	testutil.NoError(t, err)
	x := liar{s, link.NewConn(s, 1<<20)}
	_, offer, err := x.conn.Recv(ctx)
	testutil.NoError(t, err)
	var d codec.Decoder
	d.Reset(codec.Message{Body: offer}, nil)
	testutil.NoError(t, d.ArrayOf(4))
	elem, err := d.String()
	testutil.NoError(t, err)
	d.Done(true)
	var e codec.Encoder
	e.Reset(nil)
	testutil.NoError(t, codec.Encode(&e, struct {
		Elem   string
		Shared bool
	}{elem, false}))
	testutil.NoError(t, x.conn.Send(ctx, 'A', e.Message().Body))
	e.Done(true)
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	t.Cleanup(func() { x.conn.Close(); c.Close() })
	return c, x
}

// say sends a message with one copied block of bytes begin to end.
func (l liar) say(t *testing.T, begin, end uint64, body []byte, load int) {
	t.Helper()
	head := binary.LittleEndian.AppendUint32(nil, 1)
	for _, n := range []uint64{crossing.Copied, begin, end} {
		head = binary.LittleEndian.AppendUint64(head, n)
	}
	testutil.NoError(t, l.conn.Send(testutil.Context(t), 'V', append(head, body...), make([]byte, load)))
}

// float32s is the form of a tensor of block 0.
func float32s(dtype byte, sizes ...byte) []byte {
	b := append([]byte{0x96, 0, dtype, 0xd4, 'S', 0, 0, 0x90 | byte(len(sizes))}, sizes...)
	return append(b, 0xc0)
}

func TestConn_PeerThatIsCutOffInTheMiddle(t *testing.T) {
	ctx := testutil.Context(t)
	before := blocks(t)
	c, l := lie(t)
	l.say(t, 0, 4*100, float32s(8, 100), 40)
	l.s.NetConn().Close() // as a kill, or a cable
	_, err := c.Recv(ctx)
	testutil.ErrorIs(t, err, ipc.ErrClosed, io.ErrUnexpectedEOF)
	testutil.ErrorContains(t, err, "40 of 400 bytes", "127.0.0.1", "dial again")
	_, err = c.Recv(ctx)
	testutil.ErrorIs(t, err, ipc.ErrClosed)
	blocksCome(t, before)
}

func TestConn_MessagesThatDoNotFit(t *testing.T) {
	ctx := testutil.Context(t)
	for name, lies := range map[string]struct {
		begin, end uint64
		body       []byte
		load       int
		want       error
	}{
		"another dtype":         {0, 16, float32s(99, 4), 16, codec.ErrFormat},
		"more than came":        {0, 16, float32s(8, 100), 16, codec.ErrFormat},
		"what is in the tail":   {0, 68, float32s(8, 18), 68, codec.ErrFormat},
		"from before the first": {8, 16, float32s(8, 4), 8, codec.ErrFormat},
		"backwards":             {16, 8, float32s(8, 4), 0, codec.ErrFormat},
		"beyond every address":  {0, 1 << 60, float32s(8, 4), 0, codec.ErrFormat},
		"more than there is":    {0, 1 << 47, float32s(8, 4), 0, nil},
		"bytes":                 {0, 16, []byte{0xd4, 'S', 0}, 16, codec.ErrFormat},
		"nothing":               {0, 16, nil, 16, codec.ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			before := blocks(t)
			c, l := lie(t)
			l.say(t, lies.begin, lies.end, lies.body, lies.load)
			l.conn.Close()
			v, err := c.Recv(ctx)
			if v != nil || err == nil {
				t.Errorf("%v, %v", v, err)
			}
			if lies.want != nil {
				testutil.ErrorIs(t, err, lies.want)
			}
			testutil.ErrorContains(t, err, "127.0.0.1")
			c.Close()
			blocksCome(t, before)
		})
	}
}

// A receiver that stops waiting in the middle of a tensor goes on there.
func TestConn_RecvGoesOnInTheMiddle(t *testing.T) {
	ctx := testutil.Context(t)
	before := blocks(t)
	c, l := lie(t)
	l.say(t, 0, 4*100, float32s(8, 100), 40)
	for range 3 {
		short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		_, err := c.Recv(short)
		cancel()
		testutil.ErrorIs(t, err, context.DeadlineExceeded)
	}
	if _, err := l.s.Write(make([]byte, 360)); err != nil {
		t.Fatal(err)
	}
	x, err := c.Recv(ctx)
	testutil.NoError(t, err)
	if x.Numel() != 100 {
		t.Errorf("%v", x)
	}
	testutil.NoError(t, x.Close())
	l.say(t, 0, 4*100, float32s(8, 100), 40) // and one that never gets more
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	_, err = c.Recv(short)
	testutil.ErrorIs(t, err, context.DeadlineExceeded)
	testutil.NoError(t, c.Close())
	blocksCome(t, before)
}

func Example() {
	ctx := context.Background()
	key := []byte("16 random bytes.")
	l, err := ipc.Listen[*tensor.Tensor]("tcp://127.0.0.1:0", key)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go func() { // on another machine
		c, err := ipc.Dial[*tensor.Tensor](ctx, l.Addr(), key)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close()
		x := tensor.Arange(tensor.Float32, 0, 3, 1)
		defer x.Close()
		if err := c.Send(ctx, x); err != nil {
			fmt.Println(err)
		}
	}()
	c, err := l.Accept(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	x, err := c.Recv(ctx) // a copy, in shared memory of this machine
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Close()
	fmt.Println(tensor.Data[float32](x), c.Shared())
	// Output: [0 1 2] false
}
