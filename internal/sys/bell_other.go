//go:build !linux

package sys

// A Bell needs Linux. No value of it can be made on other systems.
type Bell struct{}

// ListenBell needs Linux.
func ListenBell(name string) (*Bell, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Wait needs Linux.
func (b *Bell) Wait() ([]uint64, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Close needs Linux.
func (b *Bell) Close() error { return unsupportedError("an abstract socket address") }

// A BellAddr is the address of a bell.
type BellAddr struct{}

// NewBellAddr returns an address that cannot be rung.
func NewBellAddr(name string) BellAddr { return BellAddr{} }

// A Ringer needs Linux. No value of it can be made on other systems.
type Ringer struct{}

// NewRinger needs Linux.
func NewRinger() (*Ringer, error) { return nil, unsupportedError("an abstract socket address") }

// Ring needs Linux.
func (r *Ringer) Ring(addr *BellAddr, note uint64) (full bool, err error) {
	return false, unsupportedError("an abstract socket address")
}

// Close needs Linux.
func (r *Ringer) Close() error { return unsupportedError("an abstract socket address") }
