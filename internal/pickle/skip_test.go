package pickle

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// skipped is how many bytes the first pickle of b has.
func skipped(b []byte) (int, error) {
	in := bytes.NewReader(b)
	r := bufio.NewReader(in)
	err := Skip(r)
	return len(b) - in.Len() - r.Buffered(), err
}

func TestSkipEndsWherePickleEnds(t *testing.T) {
	for name, b := range captures(t) {
		if n, err := skipped(append(bytes.Clone(b), "N."...)); n != len(b) || err != nil {
			t.Errorf("%s: %d of %d bytes: %v", name, n, len(b), err)
		}
	}
	if err := Skip(bufio.NewReader(strings.NewReader(""))); err != io.EOF {
		t.Errorf("nothing: %v", err)
	}
	for _, cut := range []string{"\x80", "\x80\x04", "\x80\x04X\xff\xff\xff\xffabc", "cposix\nsystem",
		"\xff.", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if _, err := skipped([]byte(cut)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", cut, err)
		}
	}
}

// TestSkipKnowsEveryOpcode has Python list its opcodes, with those that only protocols 0 and 1
// have.
func TestSkipKnowsEveryOpcode(t *testing.T) {
	code := "import pickletools as p\n" +
		"for o in p.opcodes: print('%02x' % ord(o.code), 0 if o.arg is None else o.arg.n)\n"
	out, err := exec.Command("python3", "-c", code).Output()
	if err != nil {
		t.Skip("there is no python3 to ask for its opcodes")
	}
	// What pickletools says of arguments: their bytes; -1 up to a newline, -2 to -5 after a length
	// of one byte, of four, of four or of eight.
	samples := map[string]string{"0": "", "-1": "1\nb\n", "-2": "\x02ab", "-3": "\x02\x00\x00\x00ab",
		"-4": "\x02\x00\x00\x00ab", "-5": "\x02\x00\x00\x00\x00\x00\x00\x00ab",
		"1": "a", "2": "ab", "4": "abcd", "8": "abcdefgh"}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 60 {
		t.Fatalf("%d opcodes", len(lines))
	}
	for _, line := range lines {
		hex, arg, _ := strings.Cut(line, " ")
		var op byte
		for _, c := range hex {
			op = op<<4 | byte(strings.IndexRune("0123456789abcdef", c))
		}
		sample, ok := samples[arg]
		if !ok {
			t.Fatalf("an argument of %s bytes", arg)
		}
		if arg == "-1" && op != opGlobal && op != 'i' {
			sample = "1\n"
		}
		b := append([]byte{op}, sample+"."...)
		if op == opStop {
			b = b[:1]
		}
		if n, err := skipped(append(bytes.Clone(b), "xyz"...)); n != len(b) || err != nil {
			t.Errorf("opcode %q of %s bytes: %d of %d: %v", op, arg, n, len(b), err)
		}
	}
}

// FuzzSkip wants every pickle that is understood to have its end in the same place when it is
// skipped.
func FuzzSkip(f *testing.F) {
	for _, b := range captures(f) {
		f.Add(b)
	}
	for _, c := range hostile {
		if len(c.pickle) < 4096 {
			f.Add([]byte(c.pickle))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := skipped(b)
		d := NewDecoder(bytes.NewReader(b), inert, Limits{Items: 10_000, Depth: 100})
		if _, failed := d.Decode(); failed == nil && (err != nil || int64(n) != d.Offset()) {
			t.Fatalf("%d bytes, %v; the decoder has read %d", n, err, d.Offset())
		}
	})
}
