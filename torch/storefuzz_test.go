package torch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// FuzzStoreReply wants values or errors for any bytes of a server, and no more memory than the
// server sends.
func FuzzStoreReply(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2})
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 3), "abc"...))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<40))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := storeReply{bytes.NewReader(b), 1 << 30}.readValue()
		if len(v) > len(b) || err == nil && uint64(len(v)) != binary.LittleEndian.Uint64(b) {
			t.Errorf("%d bytes, %v", len(v), err)
		}
		if _, err := (storeReply{bytes.NewReader(b), 1}).readValue(); err == nil && binary.LittleEndian.Uint64(b) > 1 {
			t.Error("longer than its limit")
		}
		there, err := storeReply{bytes.NewReader(b), 1}.readReady()
		if err == nil && (there != (b[0] == 0) || b[0] > 1) {
			t.Error(there)
		}
		if err := (storeReply{bytes.NewReader(b), 1}).readStopped(); (err == nil) != (len(b) > 0 && b[0] == 0) {
			t.Error(err)
		}
	})
}

// A saidOnly is a client that has sent some bytes, and accepts any answer.
type saidOnly struct {
	net.Conn
	said *bytes.Reader
}

// Read reads those bytes.
func (c saidOnly) Read(b []byte) (int, error) { return c.said.Read(b) }

// Write takes everything.
func (c saidOnly) Write(b []byte) (int, error) { return len(b), nil }

// Close does nothing.
func (c saidOnly) Close() error { return nil }

// RemoteAddr returns one.
func (c saidOnly) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetWriteDeadline does nothing.
func (c saidOnly) SetWriteDeadline(time.Time) error { return nil }

// FuzzStoreQueries serves a client that sends anything. It gets no more memory than the limit. When
// it has left, the room that is taken is that of the table.
func FuzzStoreQueries(f *testing.F) {
	hello := helloStore
	f.Add([]byte{})
	f.Add(hello)
	f.Add(slices.Concat(hello, ask(querySet, "a", "1"), ask(queryGet, "a"), []byte{byte(queryNumKeys)},
		ask(queryDelete, "a")))
	f.Add(slices.Concat(hello, ask(queryAdd, "n"), []byte{9, 0, 0, 0, 0, 0, 0, 0}, ask(queryAppend, "n", "1"),
		ask(queryCompareSet, "n", "91", "")))
	f.Add(slices.Concat(hello, []byte{byte(queryWait)}, one("k"),
		[]byte{byte(queryCancelWait), byte(queryCheck)}, one("k"), ask(queryQueuePush, "k", "v"),
		ask(queryQueuePop, "k")))
	f.Add(slices.Concat(hello, ask(queryBarrier, "b"),
		[]byte{2, 0, 0, 0, 0, 0, 0, 0, byte(queryListKeys), byte(queryPing), 1, 2, 3, 4}))
	f.Add(slices.Concat(hello, []byte{byte(queryMultiSet), 1, 0, 0, 0, 0, 0, 0, 0}, ask(0, "k", "v")[1:],
		[]byte{byte(queryMultiGet)}, one("k")))
	f.Add(slices.Concat([]byte{firstQueries[querySet]}, ask(0, "a", "1")[1:], []byte{firstQueries[queryGet]},
		ask(0, "a")[1:]))
	f.Add(slices.Concat(hello, binary.LittleEndian.AppendUint64([]byte{byte(queryGet)}, 1<<63)))
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 1 << 20
		room := &storeRoom{left: most, most: most}
		s := &storeServer{opts: StoreOptions{}.serverDefaults(), table: newStoreTable(room), room: room,
			clients: map[*storeClient]bool{}, changed: make(chan struct{})}
		s.serving.Add(1)
		conn := saidOnly{said: bytes.NewReader(b)}
		failed := errors.New("none")
		s.opts.Refused = func(_ net.Addr, err error) { failed = err }
		c := &storeClient{server: s, conn: conn, in: storeReader{r: bufio.NewReader(conn), room: room, most: 1000}}
		c.serve()
		if failed == nil || len(s.table.waiting) > 0 {
			t.Errorf("%v, %d waits are left", failed, len(s.table.waiting))
		}
		kept := int64(0)
		for key, v := range s.table.values {
			kept += int64(len(key)+len(v)) + storeCost
		}
		for key, queue := range s.table.queues {
			for _, v := range queue {
				kept += int64(len(key)+len(v)) + storeCost
			}
		}
		if kept != most-room.left || kept > most {
			t.Errorf("%d bytes are kept, and %d of %d are left", kept, room.left, most)
		}
	})
}

// serveOnce calls serve for each connection.
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
				io.Copy(io.Discard, c) // unread bytes would cut off the answer
			}()
		}
	}()
	return l.Addr().String()
}

// There is an error of its own for a server of another kind, for one that says nothing, and for one
// that lies.
func TestStore_SaysThatAServerIsNone(t *testing.T) {
	hello := func(c net.Conn) {
		b := make([]byte, 10)
		io.ReadFull(c, b)
		c.Write(b[6:])
	}
	for name, k := range map[string]struct {
		serve func(c net.Conn)
		want  error
	}{
		"closes at once": {func(net.Conn) {}, ErrClosed},
		"says nothing":   {func(c net.Conn) { io.Copy(io.Discard, c) }, context.DeadlineExceeded},
		"ends in a value": {func(c net.Conn) {
			hello(c)
			c.Write(append([]byte{0}, 9, 0, 0, 0, 0, 0, 0, 0, 1))
		}, ErrClosed},
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
	if _, err := DialStore(t.Context(), "127.0.0.1:1",
		StoreOptions{Timeout: 20 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
