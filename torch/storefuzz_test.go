package torch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// FuzzStoreReply wants values and errors of what a server may say, and no more memory than it sends.
func FuzzStoreReply(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2})
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 3), "abc"...))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<40))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := storeReply{bytes.NewReader(b), 1 << 30}.value()
		if len(v) > len(b) || err == nil && uint64(len(v)) != binary.LittleEndian.Uint64(b) {
			t.Errorf("%d bytes, %v", len(v), err)
		}
		if _, err := (storeReply{bytes.NewReader(b), 1}).value(); err == nil && binary.LittleEndian.Uint64(b) > 1 {
			t.Error("longer than its limit")
		}
		there, err := storeReply{bytes.NewReader(b), 1}.ready()
		if err == nil && (there != (b[0] == 0) || b[0] > 1) {
			t.Error(there)
		}
		if err := (storeReply{bytes.NewReader(b), 1}).stopped(); (err == nil) != (len(b) > 0 && b[0] == 0) {
			t.Error(err)
		}
	})
}

// serveOnce lets serve have each connection.
func serveOnce(t *testing.T, serve func(c net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c) // what has not been read would break off what was written
			}()
		}
	}()
	return l.Addr().String()
}

// A server that is none, that says nothing, or that lies is an error of its own each.
func TestAStoreThatIsNone(t *testing.T) {
	hello := func(c net.Conn) {
		b := make([]byte, 10)
		io.ReadFull(c, b)
		c.Write(b[6:])
	}
	for name, k := range map[string]struct {
		serve func(c net.Conn)
		want  error
	}{
		"closes at once":  {func(net.Conn) {}, ErrClosed},
		"says nothing":    {func(c net.Conn) { io.Copy(io.Discard, c) }, context.DeadlineExceeded},
		"ends in a value": {func(c net.Conn) { hello(c); c.Write(append([]byte{0}, 9, 0, 0, 0, 0, 0, 0, 0, 1)) }, ErrClosed},
		"a negative value": {func(c net.Conn) {
			hello(c)
			c.Write(bytes.Repeat([]byte{0}, 1))
			c.Write(bytes.Repeat([]byte{0xff}, 8))
		}, ErrProtocol},
		"a huge value":   {func(c net.Conn) { hello(c); c.Write([]byte{0, 0, 0, 0, 0, 0, 1, 0, 0}) }, ErrTooLong},
		"another answer": {func(c net.Conn) { hello(c); c.Write([]byte{7}) }, ErrProtocol},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if name == "says nothing" {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		s, err := DialStore(ctx, serveOnce(t, k.serve), StoreOptions{})
		if err == nil {
			_, err = s.Get(ctx, "x")
			s.Close()
		}
		var failed *StoreError
		if !errors.Is(err, k.want) || !errors.As(err, &failed) {
			t.Errorf("%s: %v, want %v", name, err, k.want)
		}
		cancel()
	}
	if _, err := DialStore(t.Context(), "127.0.0.1:1", StoreOptions{Timeout: 20 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
