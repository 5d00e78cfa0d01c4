//go:build !unix

package manager_test

import "errors"

func kill(int, string) error { return errors.ErrUnsupported }
