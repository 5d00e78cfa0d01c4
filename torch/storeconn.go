package torch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// Note [Dialects of TCPStore] A query is a code of one byte followed by its operands, in the byte
// order of the machine. A string or value is preceded by its length in 8 bytes. PyTorch 2 inserted
// the query VALIDATE before all others, and a client sends it first with a magic number; PyTorch 1
// has other codes. See
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/csrc/distributed/c10d/TCPStoreBackend.cpp
// and https://github.com/pytorch/pytorch/blob/v1.13.1/torch/csrc/distributed/c10d/TCPStore.cpp.
//
// A server does not announce its dialect, so a client probes it in a way that does no harm: it
// sends VALIDATE and PING with a nonce. PyTorch 1 reads these bytes as a SET with a key of more
// than 2^63 bytes, and closes the connection at once. PyTorch 2.0 to 2.4 closes it too, because it
// has no PING. The client tells these two apart by a second probe with GETNUMKEYS, which only
// PyTorch 2 answers.

// A query is the code of a TCPStore query in PyTorch 2. firstQueries maps it to the code in
// PyTorch 1.
type query byte

const (
	queryValidate query = iota
	querySet
	queryCompareSet
	queryGet
	queryAdd
	queryCheck
	queryWait
	queryNumKeys
	queryDelete
	queryAppend
	queryMultiGet
	queryMultiSet
	queryCancelWait // our client closes the connection instead, which all versions understand
	queryPing
	queryQueuePush // this and the following need PyTorch 2.6 or later
	queryQueuePop
	queryQueueLen
	queryListKeys
	queryBarrier
)

// storeMagic is the number that a PyTorch 2 client sends after VALIDATE.
const storeMagic = 0x3c85f7ce

// firstQueries maps a query to its code in PyTorch 1, which has WATCH_KEY before DELETE_KEY and no
// query after it.
var firstQueries = map[query]byte{querySet: 0, queryCompareSet: 1, queryGet: 2, queryAdd: 3, queryCheck: 4,
	queryWait: 5, queryNumKeys: 6, queryDelete: 8}

// These are the limits of PyTorch's servers.
const (
	maxStoreKey   = 8 << 10
	maxStoreValue = 8 << 20
	maxStoreKeys  = 128 << 10
)

// A storeRequest is the encoding of one or more queries. Its append methods return the request
// itself. They set err if an operand exceeds a limit or PyTorch 1 lacks the query; the request
// must then not be sent.
type storeRequest struct {
	b     []byte
	first bool // encode for PyTorch 1
	err   error
}

func (r *storeRequest) appendQuery(q query) *storeRequest {
	code := byte(q)
	if r.first {
		var ok bool
		if code, ok = firstQueries[q]; !ok {
			r.err = unsupported("not supported by a store of PyTorch 1")
		}
	}
	r.b = append(r.b, code)
	return r
}

func (r *storeRequest) appendCount(n int) *storeRequest {
	if n > maxStoreKeys {
		r.err = fmt.Errorf("%w: %d keys in one request, want at most %d", ErrTooLong, n, maxStoreKeys)
	}
	r.b = binary.LittleEndian.AppendUint64(r.b, uint64(n))
	return r
}

func (r *storeRequest) appendKey(key string) *storeRequest {
	if len(key) > maxStoreKey {
		r.err = fmt.Errorf("%w: key has %d bytes, want at most %d", ErrTooLong, len(key), maxStoreKey)
	}
	r.b = binary.LittleEndian.AppendUint64(r.b, uint64(len(key)))
	r.b = append(r.b, key...)
	return r
}

func (r *storeRequest) appendKeys(keys []string) *storeRequest {
	r.appendCount(len(keys))
	for _, key := range keys {
		r.appendKey(key)
	}
	return r
}

func (r *storeRequest) appendValue(v []byte) *storeRequest {
	if len(v) > maxStoreValue {
		r.err = fmt.Errorf("%w: value has %d bytes, want at most %d: send large values through a connection",
			ErrTooLong, len(v), maxStoreValue)
	}
	r.b = binary.LittleEndian.AppendUint64(r.b, uint64(len(v)))
	r.b = append(r.b, v...)
	return r
}

func (r *storeRequest) appendNumber(n int64) *storeRequest {
	r.b = binary.LittleEndian.AppendUint64(r.b, uint64(n))
	return r
}

// A storeReply decodes the reply of a server. Its read methods consume the reply in order, and
// return [io.EOF] or [io.ErrUnexpectedEOF] if the server disconnects.
type storeReply struct {
	r    io.Reader
	most int64 // the limit of a value, in bytes
}

func (r storeReply) readByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.r, b[:])
	return b[0], err
}

func (r storeReply) readNumber() (int64, error) {
	var b [8]byte
	_, err := io.ReadFull(r.r, b[:])
	return int64(binary.LittleEndian.Uint64(b[:])), err
}

// readValue reads a value. It grows the buffer as bytes arrive and never allocates by the
// announced length alone, because a server may send any length. The error wraps [ErrTooLong] for
// a value of more than r.most bytes.
func (r storeReply) readValue() ([]byte, error) {
	n, err := r.readNumber()
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, protocolError("value length is %d bytes, out of range", uint64(n))
	}
	if n > r.most {
		return nil, fmt.Errorf("%w: value has %d bytes, want at most StoreOptions.MaxValue, %d", ErrTooLong, n, r.most)
	}
	b, err := io.ReadAll(io.LimitReader(r.r, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// readReady reads the reply to CHECK, and reports whether all keys have values.
func (r storeReply) readReady() (bool, error) {
	b, err := r.readByte()
	if err == nil && b > 1 {
		err = protocolError("reply to CHECK is %d, want 0 or 1", b)
	}
	return b == 0, err
}

// readStopped reads the reply that ends a WAIT. It returns nil when the wait is over.
func (r storeReply) readStopped() error {
	b, err := r.readByte()
	if err == nil && b != 0 {
		err = protocolError("reply to WAIT is %d, want 0", b)
	}
	return err
}

// A storeConn is a client's connection to a server. dialStoreConn makes it. One call may use it
// at a time.
type storeConn struct {
	net.Conn
	first bool // the server speaks PyTorch 1
}

// dialStoreConn connects to a server, and waits until there is one or ctx is done. known says
// whether the server speaks PyTorch 1; if it is nil, dialStoreConn probes the dialect: see Note
// [Dialects of TCPStore]. The caller must close the connection.
func dialStoreConn(ctx context.Context, addr string, known *bool) (*storeConn, error) {
	if known != nil {
		c, err := connectStore(ctx, addr)
		if err != nil || *known {
			return &storeConn{c, true}, err
		}
		hello := binary.LittleEndian.AppendUint32([]byte{byte(queryValidate)}, storeMagic)
		return &storeConn{c, false}, sendOrClose(c, hello)
	}
	c, err := connectStore(ctx, addr)
	if err != nil {
		return nil, err
	}
	if again, err := probeServer(ctx, c, byte(queryPing), 0x53, 0x68, 0xff, 0x6c); err == nil &&
		string(again) == "Sh\xffl" {
		return &storeConn{c, false}, nil
	} else if ctx.Err() != nil {
		return nil, errors.Join(err, c.Close(), context.Cause(ctx))
	}
	c.Close()
	if c, err = connectStore(ctx, addr); err != nil {
		return nil, err
	}
	const four = byte(queryNumKeys)
	_, err = probeServer(ctx, c, four, four, four, 0xff) // 0xff is no query, so the server closes the connection
	c.Close()
	if ctx.Err() != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	first := err != nil
	return dialStoreConn(ctx, addr, &first)
}

// probeServer sends VALIDATE followed by the given bytes over c, and returns four bytes of the
// reply. It returns an error if the server closes the connection instead. c stays open.
func probeServer(ctx context.Context, c net.Conn, after ...byte) (answer []byte, err error) {
	defer cancelIO(ctx, c)()
	if _, err := c.Write(append(binary.LittleEndian.AppendUint32([]byte{byte(queryValidate)}, storeMagic),
		after...)); err != nil {
		return nil, err
	}
	answer = make([]byte, 4)
	_, err = io.ReadFull(c, answer)
	return answer, err
}

// connectStore dials until a server listens at the address or ctx is done. The caller must close
// the connection.
func connectStore(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := d.DialContext(ctx, "tcp", addr)
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func sendOrClose(c net.Conn, b []byte) error {
	if _, err := c.Write(b); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// cancelIO makes pending and later I/O of c fail when ctx is done. The caller must call stop, which
// clears the deadline: a connection may be reused if its reply arrived in time.
func cancelIO(ctx context.Context, c net.Conn) (stop func()) {
	past, set := time.Unix(1, 0), make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		c.SetDeadline(past)
		close(set)
	})
	return func() {
		if !end() {
			<-set
			c.SetDeadline(time.Time{})
		}
	}
}

// exchangeRequest sends the encoded request b and calls read for its reply. most limits a value
// in the reply, in bytes. It closes the connection on an error, which wraps [ErrClosed] if the
// server has disconnected, and is [context.Cause] if ctx is done.
func (c *storeConn) exchangeRequest(ctx context.Context, b []byte, most int64, read func(storeReply) error) error {
	stop := cancelIO(ctx, c)
	defer stop()
	_, err := c.Write(b)
	if err == nil && read != nil {
		err = read(storeReply{c, most})
	}
	if err == nil {
		return nil
	}
	c.Close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: the process that serves the store exited, or rejected the query", ErrClosed)
	}
	return err
}
