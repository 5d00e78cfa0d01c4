package tcp_test

import (
	"crypto/sha256"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var open = tcp.Options{Unencrypted: true}

// Without TLS values and tensors arrive as they do with it.
func TestUnencrypted_TensorsAreCopied(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair[*tensor.Tensor](t, open)
	x, err := tensor.NewShared(tensor.Float32, 3<<20)
	testutil.NoError(t, err)
	defer x.Close()
	for i := range tensor.Data[float32](x) {
		tensor.Data[float32](x)[i] = float32(i)
	}
	for _, way := range [][2]*ipc.Conn[*tensor.Tensor]{{a, b}, {b, a}} {
		y := send(t, ctx, way[0], way[1], x)
		same(t, y, x)
		testutil.NoError(t, y.Close())
	}
}

// Both sides have TLS or neither has: each finds out at once, and says what to do. The listener
// goes on.
func TestUnencrypted_OfBothSidesOrNone(t *testing.T) {
	for name, c := range map[string]struct{ listen, dial tcp.Options }{
		"the listener alone": {open, tcp.Options{}},
		"the caller alone":   {tcp.Options{}, open},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testutil.Context(t)
			l := listenStream[int](t, c.listen)
			begin := time.Now()
			_, err := ipc.DialWith[int](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: c.dial})
			testutil.ErrorIs(t, err, ipc.ErrPeer)
			testutil.ErrorContains(t, err, "Unencrypted", l.Addr())
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("after %v", d)
			}
			conn, err := ipc.DialWith[int](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: c.listen})
			testutil.NoError(t, err)
			testutil.NoError(t, conn.Close())
		})
	}
}

func TestUnencrypted_OfAnotherKeyIsRefused(t *testing.T) {
	l := listenStream[int](t, open)
	_, err := ipc.DialWith[int](testutil.Context(t), l.Addr(), []byte("another key"),
		ipc.MeetingOptions{Transport: open})
	testutil.ErrorIs(t, err, ipc.ErrKey)
}

func TestUnencrypted_HasNoCertificates(t *testing.T) {
	for _, opts := range []tcp.Options{
		{Unencrypted: true, TLS: new(tls.Config)},
		{Unencrypted: true, Fingerprint: [sha256.Size]byte{1}},
	} {
		_, err := ipc.ListenWith[int]("tcp://127.0.0.1:0", key, ipc.MeetingOptions{Transport: opts})
		testutil.ErrorContains(t, err, "Unencrypted")
		_, err = ipc.DialWith[int](testutil.Context(t), "tcp://127.0.0.1:1", key, ipc.MeetingOptions{Transport: opts})
		testutil.ErrorContains(t, err, "Unencrypted")
	}
}

// Somebody in the middle passes the proof of a caller without TLS on to a listener that has it. It
// proves nothing there.
func TestUnencrypted_ProofIsNotPassedOnToTLS(t *testing.T) {
	l := listenStream[int](t)
	middle, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	defer middle.Close()
	go func() {
		front, err := middle.Accept()
		if err != nil {
			return
		}
		defer front.Close()
		opening := make([]byte, 8)
		if _, err := io.ReadFull(front, opening); err != nil {
			return
		}
		back, err := tls.Dial("tcp", l.Addr()[len("tcp://"):], &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer back.Close()
		front.Write(opening)
		go io.Copy(back, front)
		io.Copy(front, back)
	}()
	_, err = ipc.DialWith[int](testutil.Context(t), "tcp://"+middle.Addr().String(), key,
		ipc.MeetingOptions{Transport: open})
	testutil.ErrorIs(t, err, ipc.ErrKey)
}

// What is garbage is sent away, and what is silent holds nobody up.
func TestUnencrypted_GarbageIsSentAway(t *testing.T) {
	ctx := testutil.Context(t)
	l := listenStream[int](t, open)
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n",
		"shoalU\x01\x00GET / HTTP/1.1" + string(make([]byte, 100)), ""} {
		c, err := net.Dial("tcp", l.Addr()[len("tcp://"):])
		testutil.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, garbage)
		testutil.NoError(t, err)
		if garbage != "" {
			testutil.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
			if _, err := io.Copy(io.Discard, c); err != nil {
				if late, ok := err.(net.Error); ok && late.Timeout() {
					t.Errorf("%q: it is kept", garbage)
				}
			}
		}
	}
	conn, err := ipc.DialWith[int](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: open})
	testutil.NoError(t, err)
	testutil.NoError(t, conn.Close())
}

// All processes of a job may come at once. (With TLS a machine that is busy may need longer for so
// many than each may take.)
func TestDial_ManyAtOnce(t *testing.T) {
	ctx := testutil.Context(t)
	l := listenStream[int](t, open)
	var wg sync.WaitGroup
	closing := func(c *ipc.Conn[int], err error) {
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	for range 200 {
		wg.Go(func() { closing(l.Accept(ctx)) })
		wg.Go(func() { closing(ipc.DialWith[int](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: open})) })
	}
	wg.Wait()
}
