package device

import "context"

// IPC shares device memory with processes of other programs, such as PyTorch, by the driver's
// handles for memory and events.
type IPC interface {
	// Open opens the memory that handle names on the device with the given number, and returns n
	// bytes of it at offset off, or empty memory if n is 0. If event is not nil, it must be an
	// event handle, and Open waits for the event until ctx ends. Open returns an error if the
	// process sender ends before the event completes or, if sender is 0 because it is not known, if
	// the event does not complete in time. done is called when the memory is no longer used; if
	// Open returns an error, it must not call done.
	Open(ctx context.Context, ordinal int, handle [64]byte, off, n int, event []byte, sender int,
		done func() error) (Memory, error)

	// Share returns the arguments by which another process can open m: the device's number, a
	// handle, and the byte offset of m in the handle's memory. event is the handle of an event that
	// completes when the device has written m, or nil if it already has. If no event can be
	// created, Share waits for the device instead. For empty memory the handle is zero. The caller
	// must call done once, after the receiver has released the memory, or if the memory was not
	// sent.
	Share(m Memory) (ordinal int, handle [64]byte, off int, event []byte, done func() error, err error)
}
