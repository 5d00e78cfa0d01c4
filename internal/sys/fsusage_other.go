//go:build !linux

package sys

// FileSystemUsage returns an error that wraps [errors.ErrUnsupported]: it is implemented for
// Linux only.
func FileSystemUsage(path string) (size, free int64, err error) {
	return 0, 0, unsupportedError("statfs")
}
