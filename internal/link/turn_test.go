package link_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A call waits for a goroutine that is there before it no longer than its context lasts, and the
// stream is as good as before.
func TestConn_WaitsForOthersAsLongAsItsContext(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair(t)
	x, y := link.NewConn(a, 100), link.NewConn(b, 100)
	sent, received := make(chan error, 1), make(chan error, 1)
	go func() { sent <- x.Send(ctx, 'A', []byte("first")) }() // nobody reads
	go func() { _, _, err := x.Recv(ctx); received <- err }() // nobody writes
	time.Sleep(50 * time.Millisecond)
	for name, call := range map[string]func(ctx context.Context) error{
		"send":    func(ctx context.Context) error { return x.Send(ctx, 'A', []byte("second")) },
		"receive": func(ctx context.Context) error { _, _, err := x.Recv(ctx); return err },
		"await":   x.Await,
	} {
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		begin := time.Now()
		testutil.ErrorIs(t, call(short), context.DeadlineExceeded)
		cancel()
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%s returned %v after its context", name, d)
		}
	}
	kind, body, err := y.Recv(ctx)
	if kind != 'A' || string(body) != "first" || errors.Join(err, <-sent) != nil {
		t.Errorf("%c, %q, %v", kind, body, err)
	}
	if err := errors.Join(y.Send(ctx, 'B', nil), <-received); err != nil {
		t.Error(err)
	}
}

// A peer that stops anywhere in a frame keeps nobody longer than a context lasts, and nothing of
// the frame is lost.
func TestRecv_GoesOnAnywhereInAFrame(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair(t)
	c := link.NewConn(b, 1<<20)
	text := bytes.Repeat([]byte("0123456789"), 1000)
	frame := append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), 'V'), text...)
	for _, n := range []int{1, 3, 1, 1, 600, 4000, 5000} {
		var part []byte
		part, frame = frame[:n], frame[n:]
		wrote := make(chan error, 1)
		go func() { _, err := a.Write(part); wrote <- err }()
		for waits := true; waits; {
			short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			_, _, err := c.Recv(short)
			cancel()
			testutil.ErrorIs(t, err, context.DeadlineExceeded)
			select {
			case err := <-wrote:
				waits = false
				if err != nil {
					t.Error(err)
				}
			default:
			}
		}
	}
	go a.Write(frame)
	kind, body, err := c.Recv(ctx)
	if kind != 'V' || !bytes.Equal(body, text) || err != nil {
		t.Errorf("%c, %d bytes, %v", kind, len(body), err)
	}
	go func() { a.Write([]byte("\x09\x00\x00\x00Vbody")); a.Close() }()
	_, _, err = c.Recv(ctx)
	testutil.ErrorIs(t, err, link.ErrClosed)
	if !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("%v", err)
	}
}
