package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// maxRandom is the largest request that the kernel always fulfils at once, even if signals arrive:
// https://man7.org/linux/man-pages/man2/getrandom.2.html.
const maxRandom = 256

// Random fills b with unpredictable bytes. It panics if b has more than 256 bytes. Package
// crypto/rand would make every process initialise a cryptographic module at start, so it is not
// used.
func Random(b []byte) error {
	if len(b) > maxRandom {
		panic("sys: Random: want at most 256 bytes per call")
	}
	err := retryInterrupted(func() error { _, err := unix.Getrandom(b, 0); return err })
	if err != nil {
		return fmt.Errorf("get random bytes: %w", wrapMissingCall("getrandom", err))
	}
	return nil
}
