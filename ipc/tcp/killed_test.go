package tcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// senderVar has the test binary be a process with a domain of its own, as on another machine. It
// sends a tensor to the address in it.
const senderVar = "SHOAL_TEST_TCP_SENDER"

// unencryptedVar has it leave out TLS.
const unencryptedVar = "SHOAL_TEST_TCP_UNENCRYPTED"

const sentSize = 128 << 20 // more than a network holds that nobody reads from

func sendTo(addr string) error {
	ctx := context.Background()
	c, err := ipc.DialWith[*tensor.Tensor](ctx, addr, key,
		ipc.MeetingOptions{Transport: tcp.Options{Unencrypted: os.Getenv(unencryptedVar) != ""}})
	if err != nil {
		return err
	}
	defer c.Close()
	x, err := tensor.NewShared(tensor.Uint8, sentSize)
	if err != nil {
		return err
	}
	defer x.Close()
	fmt.Println("ready")
	return c.Send(ctx, x)
}

// A sender is killed by -9 in the middle of a tensor. Its receiver gets nothing of that, keeps no
// block, and is told which machine is gone.
func TestConn_SenderIsKilledInTheMiddle(t *testing.T) {
	t.Run("encrypted", func(t *testing.T) { senderIsKilled(t, tcp.Options{}) })
	t.Run("unencrypted", func(t *testing.T) { senderIsKilled(t, tcp.Options{Unencrypted: true}, unencryptedVar+"=1") })
}

func senderIsKilled(t *testing.T, opts tcp.Options, env ...string) {
	ctx := testutil.Context(t)
	before := blocks(t)
	l := listenStream[*tensor.Tensor](t, opts)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), senderVar+"="+l.Addr()), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	testutil.NoError(t, err)
	testutil.NoError(t, cmd.Start())
	waited := false
	defer func() {
		if !waited {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	defer c.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the sender says %q, %v", line, err)
	}
	testutil.NoError(t, c.Poll(ctx)) // the tensor has begun, and does not fit into what the network holds
	testutil.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	waited = true
	x, err := c.Recv(ctx)
	if x != nil {
		t.Errorf("%v", x)
	}
	testutil.ErrorIs(t, err, ipc.ErrClosed, io.ErrUnexpectedEOF)
	testutil.ErrorContains(t, err, "127.0.0.1:", fmt.Sprintf("of %d bytes", sentSize), "dial again")
	if _, err := c.Recv(ctx); !errors.Is(err, ipc.ErrClosed) {
		t.Errorf("%v", err)
	}
	blocksCome(t, before)
}
