//go:build amd64 || arm64

package sys

import "syscall"

// TakeSignal does what a library does that wants a signal for itself: here, it lets the signal
// kill.
func TakeSignal(sig syscall.Signal) error { return changeAction(sig, new(sigaction), nil) }
