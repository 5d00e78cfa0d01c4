package png_test

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/data/image/internal/png"
)

// text is n bytes of some entropy, with repetitions.
func text(n int, letters int, r *rand.Rand) []byte {
	var b []byte
	for len(b) < n {
		if len(b) > 0 && r.IntN(4) == 0 {
			from := r.IntN(len(b))
			b = append(b, b[from:min(len(b), from+r.IntN(300))]...)
		} else {
			for range r.IntN(40) {
				b = append(b, byte(int(r.ExpFloat64()*float64(letters))))
			}
		}
	}
	return b[:n]
}

func TestInflateUndoesDeflate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 100, 5000, 70_000, 300_000} {
		for _, letters := range []int{1, 5, 60} {
			for _, level := range []int{flate.NoCompression, flate.BestSpeed, flate.BestCompression,
				flate.HuffmanOnly} {
				want := text(n, letters, r)
				var packed bytes.Buffer
				w, err := flate.NewWriter(&packed, level)
				if err != nil {
					t.Fatal(err)
				}
				w.Write(want)
				w.Close()
				got, err := png.Inflate(packed.Bytes(), n)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes of %d letters at level %d: %v, equal: %v", n, letters, level, err,
						bytes.Equal(got, want))
				}
			}
		}
	}
}

func FuzzInflate(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, level := range []int{flate.NoCompression, flate.BestCompression, flate.HuffmanOnly} {
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, level)
		if err != nil {
			f.Fatal(err)
		}
		w.Write(text(500, 20, r))
		w.Close()
		f.Add(packed.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), 1<<20))
		if err != nil || len(want) == 1<<20 {
			png.Inflate(data, len(want)+1)
			return
		}
		got, err := png.Inflate(data, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v, %d bytes; package flate has %d", err, len(got), len(want))
		}
	})
}
