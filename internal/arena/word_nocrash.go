//go:build !shoalcrash

package arena

// crashing is true in binaries that `make crashpoints` builds. In all other builds the compiler
// removes the code that it guards.
const crashing = false

func crashPoint(string)    {}
func disabled(string) bool { return false }
func reaperHeld() bool     { return false }
func commitFails() bool    { return false }
