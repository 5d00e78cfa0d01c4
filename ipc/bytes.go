package ipc

import (
	"context"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
)

// A BytesReceiver receives messages of type []byte. It is implemented by *[PipeEnd] and *[Conn]
// with []byte as their type parameter. Other packages cannot implement it.
type BytesReceiver interface {
	Recv(ctx context.Context) ([]byte, error)
	recvBody(ctx context.Context, read func(*codec.Decoder) error) error
}

var ( // references for tools that do not look through type parameters
	_ = BytesReceiver.recvBody
	_ = (*PipeEnd[int, []byte]).recvBody
	_ = (*Conn[[]byte]).recvBody
)

// A BufferTooShortError is returned by [RecvBytesInto] for a message that is longer than the
// buffer, like Python's BufferTooShort. It wraps [io.ErrShortBuffer].
type BufferTooShortError struct {
	Message []byte // the whole message; it will not be received again
	Room    int    // length of the buffer in bytes
}

// Error returns a one-line description.
func (e *BufferTooShortError) Error() string {
	return fmt.Sprintf("ipc: message has %d bytes, buffer has %d: take the message from BufferTooShortError.Message",
		len(e.Message), e.Room)
}

// Unwrap returns [io.ErrShortBuffer].
func (e *BufferTooShortError) Unwrap() error { return io.ErrShortBuffer }

// RecvBytesInto receives a message into buf without allocating memory for it, and returns the
// message's length, like Python's recv_bytes_into. If the message is longer than buf, buf is
// unchanged and the error is a *[BufferTooShortError] that contains the message. Other errors are
// as for Recv.
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

// RecvBytes receives a message of at most maxLength bytes, like Python's recv_bytes(maxlength). It
// discards a longer message before allocating memory for it and returns wire.ErrTooLong. Unlike in
// Python, the connection remains usable: the next message can be received. It returns [ErrSize] if
// maxLength is negative. Other errors are as for Recv.
func RecvBytes(ctx context.Context, from BytesReceiver, maxLength int) (msg []byte, err error) {
	if maxLength < 0 {
		return nil, fmt.Errorf("receive: maxLength %d, want 0 or more: %w", maxLength, ErrSize)
	}
	err = from.recvBody(ctx, func(d *codec.Decoder) error {
		b, err := bytesOf(d)
		switch {
		case err != nil:
			return err
		case len(b) > maxLength:
			return fmt.Errorf("receive: %w: %d bytes, want at most %d", codec.ErrTooLong, len(b), maxLength)
		}
		msg = append(make([]byte, 0, len(b)), b...)
		return nil
	})
	return msg, err
}

// bytesOf decodes a message of type []byte without copying it. A nil slice was sent as nil and
// is returned as nil. The result aliases the decoder's buffer and must not be used after the
// message is released.
func bytesOf(d *codec.Decoder) (b []byte, err error) {
	if d.IsNil() { // nil slice
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

// getBody receives a message and calls read to decode it. It returns the errors of
// [Receiver.Get], or the error of read, after which the message is lost. read must not retain
// the decoder's memory: it is reused after read returns.
func (r *Receiver[T]) getBody(ctx context.Context, read func(*codec.Decoder) error) error {
	if err := r.end.beginOp(); err != nil {
		return err
	}
	defer r.end.endOp()
	in := newIncoming(r.end.d)
	defer in.recycle()
	if err := r.getMessage(ctx, in); err != nil {
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
	m, err := c.recvMessage(ctx)
	if err != nil {
		return err
	}
	defer crossing.Release(m.Blocks)
	return readBody(new(codec.Decoder), m.Body, read)
}
