package safefile

import (
	"errors"
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/internal/sys"
)

// ErrLimit is returned, wrapped, if a file requests more memory than its reader allows.
var ErrLimit = errors.New("larger than the limit")

// AlwaysAllowed is the number of bytes that any file may request, whatever its own size.
const AlwaysAllowed = 64 << 20

// UnknownSize is passed as the size of the source if it is not known, as for a pipe.
const UnknownSize = -1

// MaxDeflateRatio bounds the expansion of deflate, which encodes at most 258 bytes in two bits (RFC
// 1951, section 3.2.5).
const MaxDeflateRatio = 1040

// By default compressed data may expand to maxInflated bytes or to maxRatio times its size,
// whichever is larger. Without a limit a file of 12 MB could expand to 12 GiB of zeros.
const (
	maxInflated = 1 << 30
	maxRatio    = 100
)

// InflatedSize returns the default limit for the expanded size of packed compressed bytes: 1 GiB or
// 100 times packed, whichever is larger, but at most [MaxDeflateRatio] times packed. It returns
// [math.MaxInt64] instead of overflowing.
func InflatedSize(packed int64) int64 {
	if packed > math.MaxInt64/MaxDeflateRatio {
		return math.MaxInt64
	}
	return min(packed*MaxDeflateRatio, max(maxInflated, packed*maxRatio))
}

// CheckSize returns an error that wraps ErrLimit if a file requests too many bytes of memory.
// The limit is most. If most is 0, the limit is the smaller of fills, the size that the file can
// fill or [UnknownSize], and the memory that this process can allocate without invoking the OOM
// killer, but at least [AlwaysAllowed]. If most is negative, there is no limit. The error ends
// with remedy, which must tell the user how to raise the limit.
func CheckSize(bytes, fills, most int64, remedy string) error {
	if err := CheckPlausible(bytes, fills, most, remedy); err != nil || most != 0 || bytes <= AlwaysAllowed {
		return err
	}
	m, err := sys.MemoryLimit()
	if free := m.Headroom(); err == nil && bytes > free { // no limit if the system reports none
		return limitError(bytes, remedy, "this process can allocate %d", free)
	}
	return nil
}

// CheckPlausible is CheckSize for bytes that are mapped or skipped, so that memory does not
// bound them. If most is 0 and fills is [UnknownSize], there is no limit.
func CheckPlausible(bytes, fills, most int64, remedy string) error {
	switch {
	case most > 0 && bytes > most:
		return limitError(bytes, remedy, "the limit is %d", most)
	case most == 0 && bytes > AlwaysAllowed && fills != UnknownSize && bytes > fills:
		return limitError(bytes, remedy, "a file of this size can contain at most %d", fills)
	}
	return nil
}

func limitError(bytes int64, remedy, format string, args ...any) error {
	return fmt.Errorf("%w: it needs %d bytes, but %s: %s", ErrLimit, bytes, fmt.Sprintf(format, args...), remedy)
}
