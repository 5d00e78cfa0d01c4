//go:build !linux

package sys

import (
	"errors"
	"fmt"
)

// unsupported names the call that only Linux has.
func unsupported(call string) error {
	return fmt.Errorf("sys: %s needs Linux: %w", call, errors.ErrUnsupported)
}
