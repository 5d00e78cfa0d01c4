package top_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/top"
)

// decodeAll decodes what came in pieces. Nothing follows the last one.
func decodeAll(pieces ...string) (keys []top.Key) {
	var pending []byte
	for i := 0; i <= len(pieces); i++ {
		if i < len(pieces) {
			pending = append(pending, pieces[i]...)
		}
		for {
			k, n := top.Decode(pending, i == len(pieces))
			if n == 0 {
				break
			}
			keys, pending = append(keys, k), pending[n:]
		}
	}
	return keys
}

func TestKeysAreDecodedAsTerminalsSendThem(t *testing.T) {
	k := top.Keys
	for _, c := range []struct {
		pieces []string
		want   []top.Key
	}{
		{[]string{"jk"}, []top.Key{'j', 'k'}},
		{[]string{"\x1b[A\x1b[B\x1b[C\x1b[D"}, []top.Key{k["up"], k["down"], k["right"], k["left"]}},
		{[]string{"\x1bOA\x1bOB\x1bOH\x1bOF"}, []top.Key{k["up"], k["down"], k["home"], k["end"]}},
		{[]string{"\x1b[1;5A\x1b[1;2B"}, []top.Key{k["up"], k["down"]}},
		{[]string{"\x1b[5~\x1b[6~\x1b[1~\x1b[4~\x1b[6;5~"},
			[]top.Key{k["pgup"], k["pgdn"], k["home"], k["end"], k["pgdn"]}},
		{[]string{"\x1b", "[", "A"}, []top.Key{k["up"]}},
		{[]string{"\x1b[", "1;", "5A", "x"}, []top.Key{k["up"], 'x'}},
		{[]string{"\x1b"}, []top.Key{k["esc"]}},
		{[]string{"\x1b\x1b[A"}, []top.Key{k["esc"], k["up"]}},
		{[]string{"\x1bx"}, []top.Key{k["esc"], 'x'}},
		{[]string{"\x1b[Z\t"}, []top.Key{k["backtab"], k["tab"]}},
		{[]string{"\r\n"}, []top.Key{k["enter"], k["enter"]}},
		{[]string{"\x7f\b\x15"}, []top.Key{k["backspace"], k["backspace"], k["erase"]}},
		{[]string{"\x03\x1a"}, []top.Key{k["interrupt"], k["stop"]}},
		{[]string{"é\xe8\xb3", "\x87"}, []top.Key{'é', '資'}},
		{[]string{"\xff\xe8q"}, []top.Key{k["unknown"], k["unknown"], 'q'}},
		{[]string{"\xe8"}, []top.Key{k["unknown"]}},
		// F1, F5, a paste
		{[]string{"\x1b[[A\x1b[15~\x1b[200~q"}, []top.Key{k["unknown"], k["unknown"], k["unknown"], 'q'}},
		{[]string{"\x1b["}, []top.Key{k["unknown"]}},
		{[]string{"\x1b[\x03"}, []top.Key{k["unknown"], k["interrupt"]}},
		{nil, nil},
	} {
		if got := decodeAll(c.pieces...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.pieces, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x1b[1;5Aq\x1b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, n := top.Decode(b, true)
			if n <= 0 || n > len(b) {
				t.Fatalf("%d bytes of %q", n, b)
			}
			b = b[n:]
		}
	})
}
