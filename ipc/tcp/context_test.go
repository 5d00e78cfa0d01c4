package tcp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// briefly makes a call whose context ends soon, and wants the call to end with it.
func briefly(t *testing.T, what string, call func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(testutil.Context(t), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := call(ctx)
	testutil.ErrorIs(t, err, context.DeadlineExceeded)
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("%s returned %v after its context", what, d)
	}
	return err
}

// The other side neither reads nor writes. A call that waits behind another one's call ends with
// its context as well, and the connection goes on.
func TestConn_CallsBehindOthersEndWithTheirContexts(t *testing.T) {
	for name, o := range map[string]tcp.Options{"TLS": {}, "unencrypted": open} {
		t.Run(name, func(t *testing.T) {
			ctx := testutil.Context(t)
			a, b := pair[*tensor.Tensor](t, o)
			x, err := tensor.NewShared(tensor.Uint8, 64<<20)
			testutil.NoError(t, err)
			defer x.Close()
			sent, received := make(chan error, 1), make(chan error, 1)
			go func() { sent <- a.Send(ctx, x) }()
			go func() { _, err := a.Recv(ctx); received <- err }()
			testutil.NoError(t, b.Poll(ctx)) // the first of it is here, and the rest has no room on the way
			err = briefly(t, "send", func(ctx context.Context) error { return a.Send(ctx, x) })
			testutil.ErrorIs(t, err, ipc.ErrFull)
			err = briefly(t, "receive", func(ctx context.Context) error { _, err := a.Recv(ctx); return err })
			testutil.ErrorIs(t, err, ipc.ErrEmpty)
			briefly(t, "poll", a.Poll)
			y, err := b.Recv(ctx)
			testutil.NoError(t, errors.Join(err, <-sent))
			testutil.NoError(t, y.Close())
			testutil.NoError(t, b.Send(ctx, nil))
			testutil.NoError(t, <-received)
		})
	}
}

// A peer that stops in the middle of a message keeps nobody longer than a context lasts.
func TestConn_RecvEndsWithItsContextInTheMiddleOfAMessage(t *testing.T) {
	c, l := lie(t)
	head := []byte{30, 0, 0, 0, 'V', 1, 0, 0}
	for i := range head {
		if _, err := l.s.Write(head[i : i+1]); err != nil {
			t.Fatal(err)
		}
		briefly(t, "receive", func(ctx context.Context) error { _, err := c.Recv(ctx); return err })
	}
	l.s.NetConn().Close()
	_, err := c.Recv(testutil.Context(t))
	testutil.ErrorIs(t, err, ipc.ErrClosed)
}
