//go:build !shoalcrash

package arena

// crashing is true in binaries that `make crashpoints` builds. Everything that it guards is gone
// from all others.
const crashing = false

func obey[T any](T, T)     {}
func crashPoint(string)    {}
func disabled(string) bool { return false }
func reaperHeld() bool     { return false }
func commitFails() bool    { return false }
