//go:build !linux

package sys

// FileSystemUsage returns an error: it is implemented for Linux only.
func FileSystemUsage(path string) (size, free int64, err error) {
	return 0, 0, unsupportedError("statfs")
}
