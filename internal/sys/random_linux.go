package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// maxRandom is the most that the kernel gives in one piece, whatever signals come.
const maxRandom = 256

// Random fills b, at most 256 bytes, with unpredictable bytes. Package crypto/rand does the same,
// and makes every process initialise a module of cryptography at its start.
func Random(b []byte) error {
	if len(b) > maxRandom {
		panic("sys: Random gives at most 256 bytes at once")
	}
	err := retry(func() error { _, err := unix.Getrandom(b, 0); return err })
	if err != nil {
		return fmt.Errorf("get random bytes: %w", missing("getrandom", err))
	}
	return nil
}
