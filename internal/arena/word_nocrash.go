//go:build !shoalcrash

package arena

// crashing is true in binaries that `make crashpoints` builds. In all other builds the compiler
// removes the code that it guards.
const crashing = false

func crashPoint(string)      {}
func isDisabled(string) bool { return false }
func isReaperHeld() bool     { return false }
func commitFails() bool      { return false }
func isBellFull() bool       { return false }
