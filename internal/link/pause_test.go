package link

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// room is the memory for a load in tests.
type room struct {
	bytes   []byte
	dropped int
}

func (r *room) Parts() [][]byte { return [][]byte{r.bytes} }
func (r *room) Drop()           { r.dropped++ }

// loaded receives a load of n bytes, of which send arrives, in a bubble where time is fake.
func loaded(t *testing.T, n int, send []byte, cut bool) (r *room, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			NewConn(a, 100).Send(t.Context(), 'V', nil, send)
			if cut {
				a.Close()
			}
		}()
		r = &room{bytes: make([]byte, n)}
		c := NewConn(b, 100)
		defer c.Close()
		_, _, _, err = c.RecvLoad(t.Context(), func(byte, []byte) (Load, int64, error) { return r, 0, nil })
	})
	return r, err
}

func TestRecvLoad_APeerThatPausesIsLeft(t *testing.T) {
	r, err := loaded(t, 10, []byte{1, 2, 3}, false)
	if !errors.Is(err, ErrClosed) || !errors.Is(err, os.ErrDeadlineExceeded) || r.dropped != 1 {
		t.Errorf("%v, dropped %d times", err, r.dropped)
	}
}

func TestRecvLoad_APeerThatIsCutOffIsNamed(t *testing.T) {
	r, err := loaded(t, 10, []byte{1, 2, 3}, true)
	if !errors.Is(err, ErrClosed) || !errors.Is(err, io.ErrUnexpectedEOF) || r.dropped != 1 {
		t.Errorf("%v, dropped %d times", err, r.dropped)
	}
}

func TestRecvLoad_ALoadArrives(t *testing.T) {
	r, err := loaded(t, 3, []byte{1, 2, 3}, false)
	if err != nil || string(r.bytes) != "\x01\x02\x03" || r.dropped != 0 {
		t.Errorf("%v, %v, dropped %d times", r.bytes, err, r.dropped)
	}
}

// A receiver may poll, with a moment for each call. It still leaves a peer that has stopped.
func TestRecvLoad_APeerThatPausesIsLeftByOneThatPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		go NewConn(a, 100).Send(t.Context(), 'V', nil, []byte{1, 2, 3})
		c := NewConn(b, 100)
		defer c.Close()
		r := &room{bytes: make([]byte, 10)}
		err := polled(t, func(ctx context.Context) error {
			_, _, _, err := c.RecvLoad(ctx, func(byte, []byte) (Load, int64, error) { return r, 0, nil })
			return err
		})
		if !errors.Is(err, ErrClosed) || !errors.Is(err, os.ErrDeadlineExceeded) || r.dropped != 1 {
			t.Errorf("%v, dropped %d times", err, r.dropped)
		}
	})
}

// polled calls receive, with 10 milliseconds for each call, until it returns another error than
// that the time is over. The receiver must give up once frameTime has passed.
func polled(t *testing.T, receive func(context.Context) error) error {
	t.Helper()
	begin := time.Now()
	for {
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := receive(short)
		cancel()
		passed := time.Since(begin)
		if passed > 2*frameTime {
			t.Errorf("the receiver still waits after %v", passed)
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			if passed < frameTime {
				t.Errorf("the receiver gives up after %v, want %v", passed, frameTime)
			}
			return err
		}
	}
}

// That holds for a frame without a load as well, wherever the peer has stopped in it.
func TestRecv_APeerThatStopsInAFrameIsLeftByOneThatPolls(t *testing.T) {
	for _, part := range []string{"\x09", "\x09\x00\x00\x00V", "\x09\x00\x00\x00Vbody"} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			go a.Write([]byte(part))
			c := NewConn(b, 100)
			defer c.Close()
			err := polled(t, func(ctx context.Context) error {
				_, _, err := c.Recv(ctx)
				return err
			})
			if !errors.Is(err, ErrClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after %q: %v", part, err)
			}
		})
	}
}
