package pickle

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
)

// Skip reads to the end of one pickle of any protocol without decoding it. It also accepts pickles
// that a [Decoder] refuses. It returns [io.EOF] if there is no pickle. The error wraps [ErrFormat]
// if the input ends within the pickle or contains an unknown opcode.
func Skip(r *bufio.Reader) error {
	if _, err := r.Peek(1); err != nil {
		return err
	}
	for {
		op, err := r.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		skip := behind[op]
		if skip == nil {
			return malformed("unknown opcode 0x%02x", op)
		}
		if err := skip(r); err != nil {
			return unexpected(err)
		}
		if op == opStop {
			return nil
		}
	}
}

// behind maps each opcode to a function that skips its operands. A frame may end within a value, so
// its contents are scanned like all other opcodes.
var behind = func() (all [256]func(*bufio.Reader) error) {
	for _, row := range []struct {
		ops  string
		skip func(*bufio.Reader) error
	}{
		{"(.012NRQabdelostu)]}\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", skipBytes(0)},
		{"Khq\x80\x82", skipBytes(1)},
		{"M\x83", skipBytes(2)},
		{"Jjr\x84", skipBytes(4)},
		{"G\x95", skipBytes(8)},
		{"UC\x8a\x8c", skipSized(1)},
		{"TXB\x8b", skipSized(4)},
		{"\x8d\x8e\x96", skipSized(8)},
		{"FILPSVgp", skipLines(1)},
		{"ci", skipLines(2)},
	} {
		for _, op := range []byte(row.ops) {
			all[op] = row.skip
		}
	}
	return all
}()

func skipBytes(n int) func(*bufio.Reader) error {
	return func(r *bufio.Reader) error {
		_, err := r.Discard(n)
		return err
	}
}

// skipSized returns a function that skips a little-endian length of width bytes and as many
// bytes as it specifies. Its error wraps [ErrFormat] if the length exceeds an int.
func skipSized(width int) func(*bufio.Reader) error {
	return func(r *bufio.Reader) error {
		var length [8]byte
		for i := range width {
			b, err := r.ReadByte()
			if err != nil {
				return err
			}
			length[i] = b
		}
		n := binary.LittleEndian.Uint64(length[:])
		if n > math.MaxInt {
			return fmt.Errorf("value has %d bytes: %w", n, ErrFormat)
		}
		_, err := r.Discard(int(n))
		return err
	}
}

func skipLines(n int) func(*bufio.Reader) error {
	return func(r *bufio.Reader) error {
		for n := n; n > 0; {
			switch b, err := r.ReadByte(); {
			case err != nil:
				return err
			case b == '\n':
				n--
			}
		}
		return nil
	}
}
