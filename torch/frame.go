package torch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Note [Frames] A message is preceded by its length in 4 bytes, big-endian and signed. If the
// length does not fit, the 4 bytes are -1 and the next 8 bytes hold the length. See _send_bytes and
// _recv_bytes in https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/connection.py.

// together is the largest message that Python writes in one piece with its length. Readers must not
// depend on it.
const together = 16 << 10

// frameHead returns the header of a message of n bytes. The slice has capacity for the message
// too if Python would write both in one piece.
func frameHead(n int) []byte {
	if n > math.MaxInt32 {
		return binary.BigEndian.AppendUint64([]byte{0xff, 0xff, 0xff, 0xff}, uint64(n))
	}
	return binary.BigEndian.AppendUint32(make([]byte, 0, 4+min(n, together)), uint32(n))
}

// writeFrame writes a message with its header.
func writeFrame(w io.Writer, b []byte) error {
	_, err := putFrame(w, b)
	return err
}

// putFrame is [writeFrame]; it also returns the number of bytes written, including the header,
// which after an error tells how much of the frame the peer may have.
func putFrame(w io.Writer, b []byte) (n int, err error) {
	head := frameHead(len(b))
	if len(b) <= together {
		head, b = append(head, b...), nil
	}
	if n, err = w.Write(head); err != nil {
		return n, fmt.Errorf("send: %w", err)
	}
	if len(b) == 0 {
		return n, nil
	}
	more, err := w.Write(b)
	if err != nil {
		err = fmt.Errorf("send: %w", err)
	}
	return n + more, err
}

// frameRest returns the part of a frame that follows its first n bytes. b is the whole message
// without its header.
func frameRest(b []byte, n int) []byte {
	head := frameHead(len(b))
	return append(slices.Clone(head[min(n, len(head)):]), b[max(0, n-len(head)):]...)
}

var (
	// errIdle reports a deadline that expired before the first byte of a message.
	errIdle = errors.New("torch: deadline expired before a message")
	// errBegun reports a deadline that expired after the first byte of a message.
	errBegun = errors.New("torch: deadline expired within a message")
)

// classifyTimeout converts an expired deadline to errIdle or, if begun, to errBegun. begun means
// that a part of the message has been transferred. It returns any other error unchanged.
func classifyTimeout(err error, begun bool) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case begun:
		return errBegun
	}
	return errIdle
}

// nextFrame reads the next message. It returns [io.EOF] if the peer closed the connection between
// two messages, and an error that wraps [ErrTooLong] if the message is longer than limit.
func nextFrame(r io.Reader, limit int64) ([]byte, error) { return new(frame).read(r, limit) }

// A frame is the part of a message that has been read. The zero value is the state before a
// message. One goroutine may use it at a time.
type frame struct {
	head [12]byte
	n    int    // bytes of head that have been read
	b    []byte // the message without its header
}

// read reads the remaining part of a message and returns the whole message without its header.
// It may be called again after errIdle and errBegun, and continues where it stopped. The error
// is [io.EOF] if the peer closed the connection before the message. It wraps [ErrTooLong] if the
// message has more than limit bytes, and [ErrProtocol] if its length is negative.
func (f *frame) read(r io.Reader, limit int64) ([]byte, error) {
	size, err := f.size(r)
	if err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, protocolError("message length is %d bytes, want 0 or more", size)
	}
	if size > limit {
		return nil, fmt.Errorf("receive: message has %d bytes, want at most %d: %w", size, limit, ErrTooLong)
	}
	if f.b == nil {
		f.b = make([]byte, 0, min(size, 1<<20)) // bytes that never arrive are not allocated
	}
	for int64(len(f.b)) < size {
		have := len(f.b)
		f.b = slices.Grow(f.b, int(min(size-int64(have), int64(max(have, 1<<20)))))
		n, err := io.ReadAtLeast(r, f.b[have:min(int64(cap(f.b)), size)], 1)
		f.b = f.b[:have+n]
		if err != nil {
			return nil, classifyTimeout(truncatedError(err), true)
		}
	}
	b := f.b
	*f = frame{}
	return b, nil
}

// size reads the header of a message and returns its length in bytes, which may be negative. It
// may be called again as [frame.read] may.
func (f *frame) size(r io.Reader) (int64, error) {
	whole := 4
	for f.n < whole || f.hasLongLength() && f.n < len(f.head) {
		if f.n >= whole {
			whole = len(f.head)
		}
		n, err := io.ReadAtLeast(r, f.head[f.n:whole], 1)
		f.n += n
		if err != nil && f.n == 0 {
			return 0, classifyTimeout(err, false)
		} else if err != nil {
			return 0, classifyTimeout(truncatedError(err), true)
		}
	}
	if f.hasLongLength() {
		return int64(binary.BigEndian.Uint64(f.head[4:])), nil
	}
	return int64(int32(binary.BigEndian.Uint32(f.head[:]))), nil
}

// hasLongLength reports whether the first 4 bytes were read and the length follows them in 8
// bytes.
func (f *frame) hasLongLength() bool {
	return f.n >= 4 && binary.BigEndian.Uint32(f.head[:]) == math.MaxUint32
}

func truncatedError(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
