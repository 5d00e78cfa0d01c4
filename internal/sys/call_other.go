//go:build !linux

package sys

import (
	"errors"
	"fmt"
)

// unsupportedError returns the error for a call that only Linux has. It wraps
// [errors.ErrUnsupported].
func unsupportedError(call string) error {
	return fmt.Errorf("sys: %s needs Linux: %w", call, errors.ErrUnsupported)
}
