//go:build arm64 && !linux

package sys

// HasBrainFloat reports whether the processor has the instructions of the extension BF16. It is
// false where no portable way to find out is known.
func HasBrainFloat() bool { return false }
