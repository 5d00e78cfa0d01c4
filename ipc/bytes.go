package ipc

import (
	"context"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
)

// A BytesReceiver is where messages of bytes come from: a *PipeEnd or a *Conn of []byte.
type BytesReceiver interface {
	Recv(ctx context.Context) ([]byte, error)
	recvBody(ctx context.Context, read func(*codec.Decoder) error) error
}

var ( // what the interface is of, for tools that look through no type parameters
	_ = BytesReceiver.recvBody
	_ = (*PipeEnd[int, []byte]).recvBody
	_ = (*Conn[[]byte]).recvBody
)

// A BufferTooShortError is a message that was longer than the buffer for it: Python's
// BufferTooShort. It wraps io.ErrShortBuffer.
type BufferTooShortError struct {
	Message []byte // all of it; it is not received again
	Room    int    // bytes of the buffer
}

// Error returns one line.
func (e *BufferTooShortError) Error() string {
	return fmt.Sprintf("ipc: a message of %d bytes for a buffer of %d; the error has it in Message",
		len(e.Message), e.Room)
}

// Unwrap returns io.ErrShortBuffer.
func (e *BufferTooShortError) Unwrap() error { return io.ErrShortBuffer }

// RecvBytesInto receives a message into buf, without other memory for it, and returns how many
// bytes it has: Python's recv_bytes_into. If it is longer than buf, the error is a
// *[BufferTooShortError], which has the message, and buf is as it was. Otherwise the errors are
// those of Recv.
func RecvBytesInto(ctx context.Context, from BytesReceiver, buf []byte) (n int, err error) {
	err = from.recvBody(ctx, func(d *codec.Decoder) error {
		b, err := bytesOf(d)
		switch {
		case err != nil:
			return err
		case len(b) > len(buf):
			return &BufferTooShortError{append([]byte(nil), b...), len(buf)}
		}
		n = copy(buf, b)
		return nil
	})
	return n, err
}

// RecvBytes receives a message of at most maxLength bytes: Python's recv_bytes(maxlength). A longer
// one is dropped before there is memory for it, with wire.ErrTooLong; what comes after it can be
// received, which Python refuses. A negative maxLength is ErrSize. Otherwise the errors are those
// of Recv.
func RecvBytes(ctx context.Context, from BytesReceiver, maxLength int) (msg []byte, err error) {
	if maxLength < 0 {
		return nil, fmt.Errorf("receive at most %d bytes: %w", maxLength, ErrSize)
	}
	err = from.recvBody(ctx, func(d *codec.Decoder) error {
		b, err := bytesOf(d)
		switch {
		case err != nil:
			return err
		case len(b) > maxLength:
			return fmt.Errorf("receive: %w: %d bytes, of at most %d", codec.ErrTooLong, len(b), maxLength)
		}
		msg = append(make([]byte, 0, len(b)), b...)
		return nil
	})
	return msg, err
}

// bytesOf reads a message of bytes where it lies.
func bytesOf(d *codec.Decoder) (b []byte, err error) {
	if d.IsNil() { // a nil slice
		return nil, d.Finish()
	}
	if b, err = d.BytesInPlace(); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	return b, d.Finish()
}

func (c *PipeEnd[S, R]) recvBody(ctx context.Context, read func(*codec.Decoder) error) error {
	return c.in.getBody(ctx, read)
}

// getBody is Get of a message that read reads. Its memory is good until read returns.
func (r *Receiver[T]) getBody(ctx context.Context, read func(*codec.Decoder) error) error {
	if err := r.end.enter(); err != nil {
		return err
	}
	defer r.end.leave()
	in := newIncoming(r.end.d)
	defer in.free()
	if err := r.take(ctx, in); err != nil {
		return err
	}
	defer in.Discard()
	return readBody(&in.dec, in.Body, read)
}

func readBody(d *codec.Decoder, body []byte, read func(*codec.Decoder) error) error {
	d.Reset(codec.Message{Body: body}, nil)
	err := read(d)
	d.Done(err == nil)
	return err
}

func (c *Conn[T]) recvBody(ctx context.Context, read func(*codec.Decoder) error) error {
	if c.pipe != nil {
		return c.pipe.recvBody(ctx, read)
	}
	m, err := c.message(ctx)
	if err != nil {
		return err
	}
	defer crossing.Release(m.Blocks)
	return readBody(new(codec.Decoder), m.Body, read)
}
