package link_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A half is one direction of a stream that takes what is written at once, as a socket does.
type half struct {
	mu     sync.Mutex
	news   sync.Cond
	b      bytes.Buffer
	closed bool
}

func (h *half) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, io.ErrClosedPipe
	}
	h.news.Broadcast()
	return h.b.Write(p)
}

func (h *half) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.b.Len() == 0 && !h.closed {
		h.news.Wait()
	}
	return h.b.Read(p)
}

func (h *half) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.news.Broadcast()
	return nil
}

// A side is one end of a stream of two halves.
type side struct{ in, out *half }

func (s side) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s side) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s side) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }

// sides returns two ends of a stream that takes what is written at once.
func sides() (a, b side) {
	x, y := new(half), new(half)
	x.news.L, y.news.L = &x.mu, &y.mu
	return side{x, y}, side{y, x}
}

// pair returns two ends of a stream.
func pair(t testing.TB) (a, b net.Conn) {
	a, b = net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// shake lets both sides prove their keys, and ends when both have.
func shake(t testing.TB, server, client, sb, cb string) (serr, cerr error) {
	a, b := sides()
	done := make(chan error)
	go func() {
		err := link.Server(a, []byte(server), link.Bound([]byte(sb)))
		a.Close()
		done <- err
	}()
	cerr = link.Client(b, []byte(client), link.Bound([]byte(cb)))
	b.Close()
	return <-done, cerr
}

func TestHandshake_BothSidesProveTheKey(t *testing.T) {
	serr, cerr := shake(t, "key", "key", "same", "same")
	if serr != nil || cerr != nil {
		t.Errorf("%v, %v", serr, cerr)
	}
	serr, cerr = shake(t, "key", "Key", "", "")
	testutil.ErrorIs(t, serr, link.ErrKey)
	testutil.ErrorIs(t, cerr, link.ErrKey)
	serr, cerr = shake(t, "key", "key", "this connection", "that one")
	testutil.ErrorIs(t, serr, link.ErrKey)
	testutil.ErrorIs(t, cerr, link.ErrKey)
	_, cerr = shake(t, "key", "", "", "")
	testutil.ErrorIs(t, cerr, link.ErrKey)
	serr, _ = shake(t, "", "key", "", "")
	testutil.ErrorIs(t, serr, link.ErrKey)
}

// A server that does not know the key cannot answer with the client's proof.
func TestHandshake_RefusesAProofSentBack(t *testing.T) {
	a, b := pair(t)
	go func() {
		a.Write(append([]byte("shoalL\x05\x00"), make([]byte, 8+32)...))
		answer := make([]byte, 8+8+32+32)
		for n := 0; n < len(answer); {
			m, err := a.Read(answer[n:])
			if err != nil {
				return
			}
			n += m
		}
		a.Write(append([]byte{0}, answer[48:]...))
	}()
	testutil.ErrorIs(t, link.Client(b, []byte("key"), link.Binding{}), link.ErrKey)
}

func TestHandshake_RefusesOtherProtocols(t *testing.T) {
	for _, text := range []string{"", "sho", "HTTP/1.1 400 Bad Request\r\n\r\n with more",
		"shoalL\x01\x00" + string(make([]byte, 100)),
		"shoalL\x02\x00" + string(make([]byte, 100)), "shoalL\x03\x00" + string(make([]byte, 100)),
		"shoalL\x04\x00" + string(make([]byte, 100)), "shoalL\x05\x00short"} {
		a, b := sides()
		a.Write([]byte(text))
		a.out.Close()
		testutil.ErrorIs(t, link.Client(b, []byte("key"), link.Binding{}), link.ErrPeer)
	}
}

// Two builds of different versions refuse each other, and each names both versions.
func TestHandshake_BothSidesNameBothVersions(t *testing.T) {
	ours := int(link.Version())
	for _, theirs := range []int{1, ours - 1, ours + 1, 0xffff} {
		said := fmt.Sprintf("it has protocol version %d, and this program has version %d:", theirs, ours)
		for name, run := range map[string]func(io.ReadWriter, []byte, link.Binding) error{
			"server": link.Server, "client": link.Client,
		} {
			a, b := sides()
			// Another version may say more behind its hello, or less.
			a.Write(append(binary.LittleEndian.AppendUint16([]byte("shoalL"), uint16(theirs)), "more"...))
			err := run(b, []byte("key"), link.Binding{})
			if !errors.Is(err, link.ErrPeer) || !strings.Contains(err.Error(), said) {
				t.Errorf("the %s says of version %d: %v", name, theirs, err)
			}
			b.Close()
			answer, _ := io.ReadAll(a)
			hello := binary.LittleEndian.AppendUint16([]byte("shoalL"), uint16(ours))
			if !bytes.HasPrefix(answer, hello) {
				t.Errorf("version %d hears %q of the %s: it cannot name this version", theirs, answer, name)
			}
		}
	}
}

func TestConn_FramesArrive(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair(t)
	x, y := link.NewConn(a, 1<<20), link.NewConn(b, 1<<20)
	sizes := []int{0, 1, 4095, 4096, 4097, 1 << 20}
	go func() {
		for i, n := range sizes {
			if err := x.Send(ctx, byte(i), bytes.Repeat([]byte{byte(i)}, n)); err != nil {
				t.Error(err)
			}
		}
		x.Close()
	}()
	for i, n := range sizes {
		kind, body, err := y.Recv(ctx)
		if err != nil || kind != byte(i) || !bytes.Equal(body, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Fatalf("frame %d: kind %d, %d bytes, %v", i, kind, len(body), err)
		}
	}
	_, _, err := y.Recv(ctx)
	testutil.ErrorIs(t, err, link.ErrClosed)
	testutil.ErrorIs(t, y.Send(ctx, 0, nil), link.ErrClosed)
	testutil.ErrorIs(t, x.Send(ctx, 0, make([]byte, 1<<20+1)), link.ErrFrame)
}

// A receiver that stops waiting loses nothing: the next receive gets the frame.
func TestRecv_CancelledLosesNoFrame(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair(t)
	x, y := link.NewConn(a, 100), link.NewConn(b, 100)
	const count = 200
	go func() {
		for i := range count {
			if err := x.Send(ctx, byte(i), []byte{1, 2, 3}); err != nil {
				t.Error(err)
			}
		}
	}()
	for next := 0; next < count; {
		short, cancel := context.WithTimeout(ctx, time.Duration(next%5)*10*time.Microsecond)
		kind, body, err := y.Recv(short)
		cancel()
		if err == nil {
			if kind != byte(next) || len(body) != 3 {
				t.Fatalf("frame %d instead of %d", kind, next)
			}
			next++
			continue
		}
		testutil.ErrorIs(t, err, context.DeadlineExceeded)
		if next%5 == 0 {
			if _, _, err := y.Recv(ctx); err != nil {
				t.Fatal(err)
			}
			next++
		}
	}
}

// A past deadline does not hide bytes that have come, in the kernel or in a buffer.
func TestAwait_SeesBytesThatCameBeforeItsContextEnded(t *testing.T) {
	ours, theirs, err := sys.Pair()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("a pair of sockets needs Linux: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(testutil.Context(t))
	cancel()
	conn := link.NewConn(ours, 1<<10)
	defer conn.Close()
	testutil.ErrorIs(t, conn.Await(over), context.Canceled)
	other, err := sys.SocketConn(theirs)
	if err != nil {
		t.Fatal(err)
	}
	sender := link.NewConn(other, 1<<10)
	for range 2 {
		if err := sender.Send(testutil.Context(t), 'A', []byte("frame")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := conn.Await(over); err != nil {
			t.Error(err)
		}
		if _, _, err := conn.Recv(testutil.Context(t)); err != nil {
			t.Error(err)
		}
	}
	testutil.ErrorIs(t, conn.Await(over), context.Canceled)
	sender.Close()
	if err := conn.Await(over); err != nil { // Await reports the end of the stream as well
		t.Error(err)
	}
}

func TestRecv_TooLongAFrameEndsTheStream(t *testing.T) {
	ctx := testutil.Context(t)
	a, b := pair(t)
	go a.Write(append(binary.LittleEndian.AppendUint32(nil, 1<<31), 'V'))
	_, _, err := link.NewConn(b, 100).Recv(ctx)
	testutil.ErrorIs(t, err, link.ErrFrame)
	if _, err := b.Write([]byte{0}); err == nil {
		t.Error("the stream is open")
	}
}

// FuzzRecv feeds arbitrary bytes to a receiver, which returns frames, or an error of a type, and
// ends.
func FuzzRecv(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 'V', 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, stream []byte) {
		c := link.NewConn(&replay{Reader: *bytes.NewReader(stream)}, 1<<16)
		for left := len(stream); ; {
			_, body, err := c.Recv(t.Context())
			if err != nil {
				if !errors.Is(err, link.ErrClosed) && !errors.Is(err, link.ErrFrame) {
					t.Errorf("an error of no type: %v", err)
				}
				return
			}
			if left -= 5 + len(body); left < 0 {
				t.Fatal("more came out than went in")
			}
		}
	})
}

// FuzzHandshake changes a byte of a true handshake, or ends one side's stream there. Then the side
// that reads it does not believe the other one. Both sides believe a handshake without a change.
func FuzzHandshake(f *testing.F) {
	for _, at := range []uint8{0, 6, 8, 39, 40, 71, 72, 200} {
		f.Add(true, at, uint8(1), false, []byte("key"), []byte("binding"))
		f.Add(false, at, uint8(0x80), false, []byte("key"), []byte(nil))
		f.Add(at%2 == 0, at, uint8(0), true, []byte{0}, []byte("binding"))
	}
	f.Fuzz(func(t *testing.T, server bool, at, mask uint8, cut bool, key, binding []byte) {
		if len(key) == 0 {
			return
		}
		a, b := sides()
		spoiled := &spoiler{side: a, at: int(at), mask: mask, cut: cut}
		if !server {
			spoiled.side = b
		}
		run := func(c side, prove func(io.ReadWriter, []byte, link.Binding) error) error {
			defer c.Close()
			if c == spoiled.side {
				return prove(spoiled, key, link.Bound(binding))
			}
			return prove(c, key, link.Bound(binding))
		}
		done := make(chan error)
		go func() { done <- run(a, link.Server) }()
		cerr := run(b, link.Client)
		serr := <-done
		reader, writer := cerr, serr
		if !server {
			reader, writer = serr, cerr
		}
		switch {
		case !spoiled.did && (reader != nil || writer != nil):
			t.Errorf("a true handshake fails: %v, %v", serr, cerr)
		case spoiled.did && !errors.Is(reader, link.ErrKey) && !errors.Is(reader, link.ErrPeer):
			t.Errorf("byte %d was changed by %#x (cut: %v), and its reader says %v, its writer %v", at, mask,
				cut, reader, writer)
		}
	})
}

// A spoiler changes a byte that is written to a connection, or ends the connection there.
type spoiler struct {
	side
	at   int
	mask uint8
	cut  bool
	did  bool
}

func (s *spoiler) Write(p []byte) (int, error) {
	at := s.at
	s.at -= len(p)
	switch {
	case at < 0 || at >= len(p):
		return s.side.Write(p)
	case s.cut:
		s.did = true
		s.side.Write(p[:at])
		return 0, errors.Join(os.ErrClosed, s.side.Close())
	}
	s.did = s.mask != 0
	p = bytes.Clone(p)
	p[at] ^= s.mask
	return s.side.Write(p)
}

// FuzzBytes plays both sides against arbitrary bytes, which prove nothing.
func FuzzBytes(f *testing.F) {
	f.Add([]byte("shoalL\x05\x00" + string(make([]byte, 72))))
	f.Add([]byte("GET /"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, side := range []func(*replay) error{
			func(r *replay) error { return link.Server(r, []byte("key"), link.Binding{}) },
			func(r *replay) error { return link.Client(r, []byte("key"), link.Binding{}) },
		} {
			if err := side(&replay{Reader: *bytes.NewReader(stream)}); !errors.Is(err, link.ErrKey) &&
				!errors.Is(err, link.ErrPeer) {
				t.Errorf("%q proves the key, or %v", stream, err)
			}
		}
	})
}

// A replay is a stream with recorded bytes of the other side.
type replay struct {
	bytes.Reader
	closed bool
}

func (r *replay) Write(b []byte) (int, error) {
	if r.closed {
		return 0, os.ErrClosed
	}
	return len(b), nil
}
func (r *replay) Close() error                     { r.closed = true; return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }
