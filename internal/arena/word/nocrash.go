//go:build !shoalcrash

package word

// Crashing is true in binaries that `make crashpoints` builds. In all other builds the compiler
// removes the code that it guards.
const Crashing = false

// Only crash builds have crash points and planted faults; see crash.go.

func crashPoint(string)      {}
func IsDisabled(string) bool { return false }
func IsReaperHeld() bool     { return false }
func CommitFails() bool      { return false }
func IsBellFull() bool       { return false }
