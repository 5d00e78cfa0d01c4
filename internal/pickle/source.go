package pickle

import (
	"fmt"
	"io"
	"slices"

	"github.com/shoal-mp/shoal/internal/sys"
)

// source reads the parts of a pickle and enforces its size limit. at counts the bytes that were
// consumed, and left the bytes that may still be. One goroutine may use it.
type source struct {
	r     io.Reader // nil if ahead is the whole input
	room  []byte    // read-ahead buffer
	ahead []byte    // buffered bytes that were not consumed
	at    int64
	left  int64
	whole bool // left is the exact size of the input, not a limit
}

// step is the maximum initial allocation for bytes that have not arrived.
const step = 64 << 10

// fill reads into the buffer if it is empty. It returns [io.EOF] at the end of the input.
func (s *source) fill() error {
	for range maxEmptyReads {
		if len(s.ahead) > 0 {
			return nil
		}
		if s.r == nil {
			return io.EOF
		}
		n, err := s.r.Read(s.room)
		s.ahead = s.room[:n]
		if n == 0 && err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// maxEmptyReads is the maximum number of consecutive reads that return neither data nor an error.
const maxEmptyReads = 100

// Read reads from the buffer. If the buffer is empty, large reads bypass it. It does not count
// the bytes.
func (s *source) Read(b []byte) (int, error) {
	if len(s.ahead) == 0 && s.r != nil && len(b) >= len(s.room) {
		return s.r.Read(b)
	}
	if err := s.fill(); err != nil {
		return 0, err
	}
	n := copy(b, s.ahead)
	s.ahead = s.ahead[n:]
	return n, nil
}

func (s *source) readByte() (byte, error) {
	if s.left < 1 {
		return 0, s.tooLongError()
	}
	if len(s.ahead) == 0 {
		if err := s.fill(); err != nil {
			return 0, unexpected(err)
		}
	}
	b := s.ahead[0]
	s.ahead = s.ahead[1:]
	s.at++
	s.left--
	return b, nil
}

// nextBytes consumes and returns n bytes, without a copy if they are buffered. The caller must
// not modify them, nor use them after the next read. It returns the same errors as readBytes.
func (s *source) nextBytes(n uint64) ([]byte, error) {
	if n > uint64(s.left) || n > uint64(len(s.ahead)) {
		return s.readBytes(n)
	}
	b := s.ahead[:n]
	s.ahead = s.ahead[n:]
	s.at += int64(n)
	s.left -= int64(n)
	return b, nil
}

// readBytes reads n bytes into newly allocated memory. The error wraps [ErrLimit] if they exceed
// the size limit, and [ErrFormat] if the input ends before.
func (s *source) readBytes(n uint64) ([]byte, error) {
	if n > uint64(s.left) {
		return nil, s.tooLongError()
	}
	first := min(n, step)
	if s.whole {
		first = n // the input is complete
	}
	b := sys.UnclearedBytes(int(first))
	sys.Ready(b)
	for have := 0; ; {
		if _, err := io.ReadFull(s, b[have:]); err != nil {
			return nil, unexpected(err)
		}
		have = len(b)
		more := int(min(n-uint64(have), uint64(have)))
		if more == 0 {
			break
		}
		b = slices.Grow(b, more)[:have+more]
	}
	s.at += int64(n)
	s.left -= int64(n)
	return b, nil
}

// readUint reads a little-endian integer of width bytes. width must be at most 8. It returns the
// same errors as readBytes.
func (s *source) readUint(width int) (n uint64, err error) {
	for i := range width {
		b, err := s.readByte()
		if err != nil {
			return 0, err
		}
		n |= uint64(b) << (8 * i)
	}
	return n, nil
}

// readLine reads a name or a number up to a newline, which it strips. The error wraps [ErrLimit]
// for more than 4096 bytes.
func (s *source) readLine() (string, error) { return s.readLineUpTo(maxLine) }

// readLongLine reads text up to a newline, which it strips. The error wraps [ErrLimit] for more
// than 256 MiB.
func (s *source) readLongLine() (string, error) { return s.readLineUpTo(maxText) }

func (s *source) readLineUpTo(most int) (string, error) {
	var line []byte
	for {
		b, err := s.readByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return string(line), nil
		}
		if line = append(line, b); len(line) > most {
			return "", fmt.Errorf("line exceeds %d bytes: %w", most, ErrLimit)
		}
	}
}

const (
	maxLine = 4096 // a name, or more digits than Python reads
	maxText = 256 << 20
)

func (s *source) tooLongError() error {
	if s.whole {
		return unexpected(io.EOF)
	}
	return fmt.Errorf("pickle is too large: %w", ErrLimit)
}

// unexpected converts the end of the input to an error that wraps [ErrFormat] and
// [io.ErrUnexpectedEOF]. It returns any other err unchanged.
func unexpected(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	return err
}
