package room

import (
	"errors"
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/internal/sys"
)

// ErrLimit is wrapped where a file asks for more than its reader gives.
var ErrLimit = errors.New("larger than the limit")

// Always is how much any file may ask for, on any machine.
const Always = 64 << 20

// Unknown stands for what a file can fill where nobody can say.
const Unknown = -1

// Expansion is more than deflate makes of a byte, which is 258 bytes from two bits.
const Expansion = 1040

// What comes out of compressed bytes may be so many, or so many times as many: a file of 12 MB
// could have 12 GiB of zeros, and hardly anybody who reads it wants those.
const (
	inflates = 1 << 30
	times    = 100
)

// Inflated is how much so many compressed bytes can fill, as far as nobody has raised the limit.
func Inflated(packed int64) int64 {
	if packed > math.MaxInt64/Expansion {
		return math.MaxInt64
	}
	return min(packed*Expansion, max(inflates, packed*times))
}

// Check returns an error that wraps ErrLimit where the elements of a file are too many bytes: more
// than most, or where that is 0 than the file can fill or this process may take without somebody
// being killed. remedy is how a user gets it all the same.
func Check(bytes, fills, most int64, remedy string) error {
	if err := Plausible(bytes, fills, most, remedy); err != nil || most != 0 || bytes <= Always {
		return err
	}
	m, err := sys.MemoryLimit()
	if free := m.Headroom(); err == nil && bytes > free { // where the system does not say, there is no limit
		return refuse(bytes, remedy, "this process may take %d", free)
	}
	return nil
}

// Plausible is Check for what does not go into memory.
func Plausible(bytes, fills, most int64, remedy string) error {
	switch {
	case most > 0 && bytes > most:
		return refuse(bytes, remedy, "the limit is %d", most)
	case most == 0 && bytes > Always && fills != Unknown && bytes > fills:
		return refuse(bytes, remedy, "a file of its size may have %d", fills)
	}
	return nil
}

func refuse(bytes int64, remedy, format string, args ...any) error {
	return fmt.Errorf("%w: it asks for %d bytes, and %s; %s", ErrLimit, bytes, fmt.Sprintf(format, args...), remedy)
}
