package kernel_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// pattern is n different bytes.
func pattern(n int) []byte {
	one := make([]byte, n)
	for i := range one {
		one[i] = byte(i + 1)
	}
	return one
}

// wantRepeated fails unless b is one again and again.
func wantRepeated(t rapid.TB, b, one []byte) {
	t.Helper()
	if !bytes.HasPrefix(one, b[:min(len(b), len(one))]) ||
		len(b) > len(one) && !bytes.Equal(b[len(one):], b[:len(b)-len(one)]) {
		t.Fatalf("%d bytes are not %d again and again", len(b), len(one))
	}
}

func TestRepeatFillsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		one := pattern(rapid.IntRange(1, 100).Draw(t, "one"))
		dst := make([]byte, rapid.IntRange(0, 70_000).Draw(t, "dst"))
		kernel.Repeat(dst, one)
		wantRepeated(t, dst, one)
	})
}

// TestStreamKeepsThePhase begins at every place in a register: the copies must not depend on where
// the registers begin.
func TestStreamKeepsThePhase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		one := pattern(1 << rapid.IntRange(0, 6).Draw(t, "log of one"))
		n, from := rapid.IntRange(0, 1000).Draw(t, "n"), rapid.IntRange(0, 40).Draw(t, "from")
		room := make([]byte, from+n+64)
		done := kernel.Stream(room[from:][:n], one)
		if done%len(one) != 0 || done > n ||
			kernel.Level() != "portable" && len(one) <= 32 && done < n-31-127-len(one) {
			t.Fatalf("%d of %d bytes are said to be filled with copies of %d", done, n, len(one))
		}
		wantRepeated(t, room[from:][:done], one)
		if !bytes.Equal(room[from+n:], make([]byte, 64)) || !bytes.Equal(room[:from], make([]byte, from)) {
			t.Fatal("bytes before or after were written")
		}
	})
}

func TestRepeatOfWhatIsLong(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		room := make([]byte, kernel.Streamed+200)
		for _, width := range []int{1, 2, 4, 8, 12, 16} {
			dst := room[width:][:kernel.Streamed+150]
			kernel.Repeat(dst, pattern(width))
			wantRepeated(t, dst, pattern(width))
			if room[width+len(dst)] != 0 {
				t.Fatal("a byte after the end was written")
			}
		}
	})
}

// BenchmarkRepeat fills four buffers in turn, as processes do that write into memory which others
// have.
func BenchmarkRepeat(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 1 << 20, 16 << 20, 64 << 20} {
		buffers := [4][]byte{}
		for i := range buffers {
			buffers[i] = make([]byte, size)
			kernel.Repeat(buffers[i], pattern(8))
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				kernel.Repeat(buffers[i%4], pattern(8))
			}
		})
	}
}
