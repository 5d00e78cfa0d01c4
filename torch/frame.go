package torch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Note [Frames] A message is its length, 4 bytes big-endian and signed, and its bytes. If a length
// does not fit, the 4 bytes are -1 and the next 8 bytes have the length.

// together is the size up to which Python writes length and bytes at once. Readers do not depend on
// it.
const together = 16 << 10

// frameHead returns the bytes in front of a message of n bytes.
func frameHead(n int) []byte {
	if n > math.MaxInt32 {
		return binary.BigEndian.AppendUint64([]byte{0xff, 0xff, 0xff, 0xff}, uint64(n))
	}
	return binary.BigEndian.AppendUint32(make([]byte, 0, 4+min(n, together)), uint32(n))
}

func writeFrame(w io.Writer, b []byte) error {
	head := frameHead(len(b))
	if len(b) <= together {
		head, b = append(head, b...), nil
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if len(b) == 0 {
		return nil
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// errIdle says that the time was up before a message had begun. The connection is still good then.
var errIdle = errors.New("torch: nothing came")

// readFrame returns the next message. It returns io.EOF if the other side has closed before a
// message.
func readFrame(r io.Reader, limit int64) ([]byte, error) {
	var head [8]byte
	if n, err := io.ReadFull(r, head[:4]); n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errIdle
	} else if err != nil {
		return nil, err
	}
	n := int64(int32(binary.BigEndian.Uint32(head[:])))
	if n == -1 {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, cutShort(err)
		}
		n = int64(binary.BigEndian.Uint64(head[:]))
	}
	if n < 0 {
		return nil, protocolError("a message of %d bytes", n)
	}
	if n > limit {
		return nil, fmt.Errorf("receive %d bytes where %d are allowed: %w", n, limit, ErrTooLong)
	}
	b := make([]byte, 0, min(n, 1<<20)) // bytes that never come are not allocated
	for int64(len(b)) < n {
		have := len(b)
		b = append(b, make([]byte, min(n-int64(have), int64(max(have, 1<<20))))...)
		if _, err := io.ReadFull(r, b[have:]); err != nil {
			return nil, cutShort(err)
		}
	}
	return b, nil
}

func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
