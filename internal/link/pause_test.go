package link

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// room is the memory for a load in tests.
type room struct {
	bytes   []byte
	dropped int
}

func (r *room) Parts() [][]byte { return [][]byte{r.bytes} }
func (r *room) Drop()           { r.dropped++ }

func loaded(t *testing.T, n int, send []byte, cut bool) (*room, error) {
	t.Helper()
	before := frameTime
	frameTime = 20 * time.Millisecond
	defer func() { frameTime = before }()
	a, b := net.Pipe()
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		NewConn(a, 100).Send(ctx, 'V', nil, send)
		if cut {
			a.Close()
		}
	}()
	r := &room{bytes: make([]byte, n)}
	c := NewConn(b, 100)
	defer c.Close()
	_, _, _, err := c.RecvLoad(ctx, func(byte, []byte) (Load, int64, error) { return r, 0, nil })
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
	before := frameTime
	frameTime = 300 * time.Millisecond
	defer func() { frameTime = before }()
	a, b := net.Pipe()
	defer a.Close()
	go NewConn(a, 100).Send(t.Context(), 'V', nil, []byte{1, 2, 3})
	c := NewConn(b, 100)
	defer c.Close()
	r := &room{bytes: make([]byte, 10)}
	for range 5000 { // each waits for at least a millisecond
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, _, _, err := c.RecvLoad(short, func(byte, []byte) (Load, int64, error) { return r, 0, nil })
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if !errors.Is(err, ErrClosed) || !errors.Is(err, os.ErrDeadlineExceeded) || r.dropped != 1 {
			t.Errorf("%v, dropped %d times", err, r.dropped)
		}
		return
	}
	t.Error("the receiver waits for ever")
}

// That holds for a frame without a load as well, wherever the peer has stopped in it.
func TestRecv_APeerThatStopsInAFrameIsLeftByOneThatPolls(t *testing.T) {
	before := frameTime
	frameTime = 300 * time.Millisecond
	defer func() { frameTime = before }()
	for _, part := range []string{"\x09", "\x09\x00\x00\x00V", "\x09\x00\x00\x00Vbody"} {
		a, b := net.Pipe()
		go a.Write([]byte(part))
		c := NewConn(b, 100)
		err := context.DeadlineExceeded
		for begin := time.Now(); errors.Is(err, context.DeadlineExceeded) && time.Since(begin) < time.Minute; {
			short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, _, err = c.Recv(short)
			cancel()
		}
		if !errors.Is(err, ErrClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q: %v", part, err)
		}
		a.Close()
		c.Close()
	}
}
