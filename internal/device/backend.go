package device

import (
	"errors"
	"sync"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A Backend is what a package brings that has devices of a kind. What a kind has none of is nil.
type Backend struct {
	// Parse returns the device of a name, which begins with the kind, up to the colon.
	Parse func(name string) (Device, error)

	// Engine returns what allocates and computes on a device, nil where that is of another kind.
	Engine func(d Device) Engine

	// Read returns memory that another process has marshalled.
	Read func(d *wire.Decoder) (Memory, error)

	// Lock locks pages of shared memory, so that devices copy to and from them by themselves. It
	// is given all bytes of a block, once. What it returns, which may be nil, is called before the
	// block is given back: others may have its pages then, or nobody.
	Lock func(pages []byte) (unlock func() error, err error)

	// EmptyCache gives back to the devices the memory that this process keeps for later
	// allocations.
	EmptyCache func() error

	// IPC is how processes of other programs share memory of the kind.
	IPC IPC
}

// backends are those of all kinds.
var backends sync.Map // kind: Backend

// Register brings the devices of a kind, such as cuda, in the place of what was registered of that
// kind before.
func Register(kind string, b Backend) { backends.Store(kind, b) }

// Find returns what is registered of a kind.
func Find(kind string) (b Backend, ok bool) {
	found, _ := backends.Load(kind)
	b, ok = found.(Backend)
	return b, ok
}

// EngineOf returns what allocates and computes on a device, nil where no package has brought it.
func EngineOf(d Device) (e Engine) {
	backends.Range(func(_, found any) bool {
		if b := found.(Backend); b.Engine != nil {
			e = b.Engine(d)
		}
		return e == nil
	})
	return e
}

// EmptyCaches has devices of all kinds give back what they keep.
func EmptyCaches() (err error) {
	backends.Range(func(_, found any) bool {
		if b := found.(Backend); b.EmptyCache != nil {
			err = errors.Join(err, b.EmptyCache())
		}
		return true
	})
	return err
}

// Locker returns the Lock of a kind that has one, nil where there is none.
func Locker() (lock func(pages []byte) (func() error, error)) {
	backends.Range(func(_, found any) bool {
		lock = found.(Backend).Lock
		return lock == nil
	})
	return lock
}
