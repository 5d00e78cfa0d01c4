package words_test

import (
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB",
		1 << 40: "1.0 TiB", 1 << 52: "4096.0 TiB",
	} {
		if got := words.Bytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range []string{"0 tensors", "1 tensor", "2 tensors"} {
		if got := words.Count(n, "tensor"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
