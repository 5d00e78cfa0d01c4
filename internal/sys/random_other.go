//go:build !linux

package sys

import "crypto/rand"

// Random fills b with unpredictable bytes.
func Random(b []byte) error {
	_, err := rand.Read(b)
	return err
}
