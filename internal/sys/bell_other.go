//go:build !linux

package sys

// A Bell is a process's doorbell. It needs Linux: [ListenBell] returns an error on other
// systems.
type Bell struct{}

// ListenBell returns an error that wraps [errors.ErrUnsupported]: an abstract socket address
// needs Linux.
func ListenBell(name string) (*Bell, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Wait returns an error that wraps [errors.ErrUnsupported]: waiting on a doorbell needs Linux.
func (b *Bell) Wait() ([]uint64, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Close returns an error that wraps [errors.ErrUnsupported]: a doorbell needs Linux.
func (b *Bell) Close() error { return unsupportedError("an abstract socket address") }

// A BellAddr is the address of a bell. Bells need Linux, so it cannot be rung.
type BellAddr struct{}

// NewBellAddr returns an address that cannot be rung.
func NewBellAddr(name string) BellAddr { return BellAddr{} }

// A Ringer wakes processes by their bells. It needs Linux: [NewRinger] returns an error on
// other systems.
type Ringer struct{}

// NewRinger returns an error that wraps [errors.ErrUnsupported]: ringing a doorbell needs
// Linux.
func NewRinger() (*Ringer, error) { return nil, unsupportedError("an abstract socket address") }

// Ring returns an error that wraps [errors.ErrUnsupported]: ringing a doorbell needs Linux.
func (r *Ringer) Ring(addr *BellAddr, note uint64) (full bool, err error) {
	return false, unsupportedError("an abstract socket address")
}

// Close returns an error that wraps [errors.ErrUnsupported]: ringing a doorbell needs Linux.
func (r *Ringer) Close() error { return unsupportedError("an abstract socket address") }
