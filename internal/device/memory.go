package device

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A Device is a tensor.Device.
type Device interface {
	fmt.Stringer
	Synchronize() error
}

// An Engine is what a package brings for a device of its kind: memory, and kernels if it is a
// Computer.
type Engine interface {
	// Alloc returns n bytes, which hold anything.
	Alloc(n int) (Memory, error)
}

// A Memory is one allocation on a device, of which a process holds a reference until End. Ranges of
// bytes are within Size.
type Memory interface {
	End() error
	Device() Device
	Size() int
	// Write copies src to the bytes from off on, and Read copies them back, when the work before is
	// done. Both return when they are done with the slice.
	Write(off int, src []byte) error
	Read(dst []byte, off int) error
	// Fill repeats a pattern of 1, 2, 4, 8 or 16 bytes over n bytes, and Copy takes n bytes of
	// other memory of a device of the same kind.
	Fill(off, n int, pattern []byte) error
	Copy(off int, src Memory, from, n int) error
	// Key is the same for the same memory, however often it arrives in this process.
	Key() any
	// Marshal writes one value by which another process finds the memory, and its blocks.
	Marshal(e *wire.Encoder) error
}
