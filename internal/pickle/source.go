package pickle

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A source reads the pieces of pickles, of which each has so many bytes left.
type source struct {
	r     *bufio.Reader
	at    int64
	left  int64
	whole bool // left is all that there is, not a limit
}

// step is the most that is allocated for bytes that may never come.
const step = 64 << 10

func (s *source) byte() (byte, error) {
	if s.left < 1 {
		return 0, s.tooLong()
	}
	b, err := s.r.ReadByte()
	if err != nil {
		return 0, unexpected(err)
	}
	s.at++
	s.left--
	return b, nil
}

// take reads n bytes into memory of their own.
func (s *source) take(n uint64) ([]byte, error) {
	if n > uint64(s.left) {
		return nil, s.tooLong()
	}
	first := min(n, step)
	if s.whole {
		first = n // they are there
	}
	b := sys.UnclearedBytes(int(first))
	sys.Ready(b)
	for have := 0; ; {
		if _, err := io.ReadFull(s.r, b[have:]); err != nil {
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

// sized reads a length of so many bytes, and then as many bytes as that says.
func (s *source) sized(width int) ([]byte, error) {
	n, err := s.uint(width)
	if err != nil {
		return nil, err
	}
	return s.take(n)
}

// uint reads a little-endian number of so many bytes, at most 8.
func (s *source) uint(width int) (n uint64, err error) {
	for i := range width {
		b, err := s.byte()
		if err != nil {
			return 0, err
		}
		n |= uint64(b) << (8 * i)
	}
	return n, nil
}

// line reads a name or a number up to a newline, without it.
func (s *source) line() (string, error) { return s.lineUpTo(maxLine) }

// longLine reads text up to a newline, without it.
func (s *source) longLine() (string, error) { return s.lineUpTo(maxText) }

func (s *source) lineUpTo(most int) (string, error) {
	var line []byte
	for {
		b, err := s.byte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return string(line), nil
		}
		if line = append(line, b); len(line) > most {
			return "", fmt.Errorf("a line of more than %d bytes: %w", most, ErrLimit)
		}
	}
}

const (
	maxLine = 4096 // a name, or more digits than Python reads
	maxText = 256 << 20
)

func (s *source) tooLong() error {
	if s.whole {
		return unexpected(io.EOF)
	}
	return fmt.Errorf("more bytes than may be read: %w", ErrLimit)
}

// unexpected turns the end of the input into an error about the pickle.
func unexpected(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	return err
}
