package ipc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// echoBytes is a process of another domain that sends back what it gets.
func echoBytes(ctx context.Context, addr string) error {
	c, err := ipc.Dial[[]byte](ctx, addr, meetingKey)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		b, err := c.Recv(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.Send(ctx, b); err != nil {
			return err
		}
	}
}

func TestRegression_S3_2_BytesBetweenTwoDomainsAreBounded(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[[]byte](t, abstract(t))
	cmd := outsider(t, l.Addr(), "bytes")
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	if c.Shared() {
		t.Fatal("two domains are one")
	}
	boundedBytes(t, c, func(b []byte) { testutil.NoError(t, c.Send(ctx, b)) })
	testutil.NoError(t, c.Close())
	wait(t, cmd)
}
