package ipc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// boundedBytes receives from c what send says that its other side sends.
func boundedBytes(t *testing.T, c ipc.BytesReceiver, send func([]byte)) {
	t.Helper()
	ctx := testutil.Context(t)
	for _, n := range []int{0, 1, 8, 200, 100_000} { // the last are longer than a slot of a ring
		msg := bytes.Repeat([]byte("fish"), n)
		send(msg)
		buf := bytes.Repeat([]byte{'-'}, len(msg)+1)
		if got, err := ipc.RecvBytesInto(ctx, c, buf); err != nil || got != len(msg) ||
			!bytes.Equal(buf, append(msg, '-')) {
			t.Fatalf("%d of %d bytes, %v", got, len(msg), err)
		}
		send(msg)
		if got, err := ipc.RecvBytes(ctx, c, len(msg)); err != nil || !bytes.Equal(got, msg) {
			t.Fatalf("%d of %d bytes, %v", len(got), len(msg), err)
		}
		if n == 0 {
			continue
		}
		send(msg)
		clear(buf)
		_, err := ipc.RecvBytesInto(ctx, c, buf[:len(msg)-1])
		short, ok := errors.AsType[*ipc.BufferTooShortError](err)
		if !ok || !errors.Is(err, io.ErrShortBuffer) || !bytes.Equal(short.Message, msg) ||
			short.Room != len(msg)-1 || buf[0] != 0 {
			t.Fatalf("%d bytes into %d: %v", len(msg), len(msg)-1, err)
		}
		send(msg)
		_, err = ipc.RecvBytes(ctx, c, len(msg)-1)
		testutil.ErrorIs(t, err, codec.ErrTooLong)
	}
	_, err := ipc.RecvBytes(ctx, c, -1)
	testutil.ErrorIs(t, err, ipc.ErrSize)
	send(nil)
	if n, err := ipc.RecvBytesInto(ctx, c, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestRegression_S3_2_BytesOfAPipeAreBounded(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		a, b, err := ipc.Pipe[[]byte, int]()
		testutil.NoError(t, err)
		defer b.Close()
		before := d.Stats().Blocks
		boundedBytes(t, b, func(m []byte) { testutil.NoError(t, a.Send(ctx, m)) })
		if n := d.Stats().Blocks; n != before {
			t.Errorf("%d blocks, and before %d", n, before)
		}
		over, cancel := context.WithTimeout(ctx, 0)
		defer cancel()
		_, err = ipc.RecvBytesInto(over, b, nil)
		testutil.ErrorIs(t, err, ipc.ErrEmpty, context.DeadlineExceeded)
		testutil.NoError(t, a.Close())
		_, err = ipc.RecvBytesInto(ctx, b, nil)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		testutil.NoError(t, b.Close())
		_, err = ipc.RecvBytes(ctx, b, 1)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
	})
}

func TestRecvBytesInto_NeedsNoMemory(t *testing.T) {
	local(t)
	ctx := t.Context()
	a, b, err := ipc.Pipe[[]byte, []byte]()
	testutil.NoError(t, err)
	defer a.Close()
	defer b.Close()
	msg, buf := make([]byte, 100), make([]byte, 100)
	sent := testing.AllocsPerRun(100, func() {
		testutil.NoError(t, a.Send(ctx, msg))
		_, err := b.Recv(ctx)
		testutil.NoError(t, err)
	})
	into := testing.AllocsPerRun(100, func() {
		testutil.NoError(t, a.Send(ctx, msg))
		_, err := ipc.RecvBytesInto(ctx, b, buf)
		testutil.NoError(t, err)
	})
	if into > sent+1 { // the closure, and not the bytes
		t.Errorf("%v allocations by RecvBytesInto and %v by Recv", into, sent)
	}
}

func ExampleRecvBytesInto() {
	ctx := context.Background()
	a, b, err := ipc.Pipe[[]byte, []byte]()
	if err != nil {
		panic(err)
	}
	defer a.Close()
	defer b.Close()
	a.Send(ctx, []byte("herring"))
	a.Send(ctx, []byte("swordfish"))
	buf := make([]byte, 8)
	for range 2 {
		n, err := ipc.RecvBytesInto(ctx, b, buf)
		if short, ok := errors.AsType[*ipc.BufferTooShortError](err); ok {
			fmt.Printf("%s does not fit\n", short.Message)
			continue
		}
		fmt.Printf("%s\n", buf[:n])
	}
	// Output:
	// herring
	// swordfish does not fit
}
