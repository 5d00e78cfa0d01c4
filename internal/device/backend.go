package device

import (
	"sync"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A Backend is what a package brings that has devices of a kind, of type D, with memory of type M.
// Package tensor says which types these are. What a kind has none of is nil.
type Backend[D, M any] struct {
	// Parse returns the device of a name, which begins with the kind, up to the colon.
	Parse func(name string) (D, error)

	// Read returns memory that another process has marshalled.
	Read func(d *wire.Decoder) (M, error)

	// Lock locks pages of shared memory, so that devices copy to and from them by themselves. It
	// is given all bytes of a block, once. What it returns, which may be nil, is called before the
	// block is given back: others may have its pages then, or nobody.
	Lock func(pages []byte) (unlock func() error, err error)
}

// backends are those of all kinds; those of other types than the asker's are not found.
var backends sync.Map // kind: Backend[D, M]

// Register brings the devices of a kind, such as cuda, in the place of what was registered of that
// kind before.
func Register[D, M any](kind string, b Backend[D, M]) { backends.Store(kind, b) }

// Find returns what is registered of a kind.
func Find[D, M any](kind string) (b Backend[D, M], ok bool) {
	found, _ := backends.Load(kind)
	b, ok = found.(Backend[D, M])
	return b, ok
}

// Locker returns the Lock of a kind that has one, nil where there is none.
func Locker[D, M any]() (lock func(pages []byte) (func() error, error)) {
	backends.Range(func(_, found any) bool {
		if b, ok := found.(Backend[D, M]); ok && b.Lock != nil {
			lock = b.Lock
		}
		return lock == nil
	})
	return lock
}
