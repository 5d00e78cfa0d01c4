package device

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A Device is a tensor.Device. String returns its name, such as cuda:0, and Synchronize waits
// until it has finished its queued work. The host is nil.
type Device interface {
	fmt.Stringer
	Synchronize() error
}

// An Engine allocates memory on a device. If it implements [Computer], it computes there too.
// [EngineOf] returns it. Its methods may be called concurrently.
type Engine interface {
	// Alloc allocates n bytes. The memory is not initialised.
	Alloc(n int) (Memory, error)
}

// A Memory is an allocation on a device. The process holds a reference to it and must call End
// once to release it. Sizes and offsets are in bytes. Byte ranges passed to the methods must be
// within Size. The methods that use the memory may return before the device has done so, unless
// stated otherwise.
type Memory interface {
	End() error
	Device() Device
	Size() int
	// Write copies src to the memory at offset off, and Read copies memory at offset off to dst,
	// after all work queued before. When they return, they no longer use the slice.
	Write(off int, src []byte) error
	Read(dst []byte, off int) error
	// Fill fills n bytes at offset off with repetitions of a pattern of 1, 2, 4, 8 or 16 bytes.
	// Copy copies n bytes of src, at offset from, to offset off; src must be on a device of the
	// same kind.
	Fill(off, n int, pattern []byte) error
	Copy(off int, src Memory, from, n int) error
	// Key returns a comparable value that is equal for all Memory values of one allocation in this
	// process, even if it arrives several times.
	Key() any
	// Marshal encodes a reference to the memory for another process, including its blocks.
	Marshal(e *codec.Encoder) error
}
