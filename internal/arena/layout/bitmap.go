package layout

import (
	"iter"
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Bitmap has one bit for each participant, by seat.
type Bitmap [BitmapWords]word.Word

// IsEmpty reports whether no bit is set.
func (b *Bitmap) IsEmpty() bool { return b[0].Load()|b[1].Load()|b[2].Load()|b[3].Load() == 0 }

// Has reports whether the bit of a seat is set.
func (b *Bitmap) Has(seat int) bool { return b[seat/64].Load()>>(seat%64)&1 != 0 }

// Seats iterates over the seats with a bit.
func (b *Bitmap) Seats() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range b {
			for v := b[i].Load(); v != 0; v &= v - 1 {
				if !yield(i*64 + bits.TrailingZeros64(v)) {
					return
				}
			}
		}
	}
}
