//go:build !linux

package sys

import "crypto/rand"

// Random fills b with what nobody can guess.
func Random(b []byte) error {
	_, err := rand.Read(b)
	return err
}
