//go:build !linux

package sys

import (
	"errors"
	"fmt"
)

// unsupported returns the error for a call that only Linux has.
func unsupported(call string) error {
	return fmt.Errorf("sys: %s needs Linux: %w", call, errors.ErrUnsupported)
}
