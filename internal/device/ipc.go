package device

import "context"

// IPC is how processes of other programs, such as PyTorch's, share memory of a kind of device: by
// handles that the driver makes of memory and of events.
type IPC interface {
	// Open returns n bytes at off of the memory that a handle names, or none if n is 0, on the
	// device that has this number. Unless event, a handle, is nil, Open waits for it before it
	// returns, as long as ctx lasts. It is an error that the sender, a process, has ended before,
	// or that the event of a sender that is not known, 0, does not come. The last user of the
	// memory calls done; after an error nobody does.
	Open(ctx context.Context, ordinal int, handle [64]byte, off, n int, event []byte, sender int,
		done func() error) (Memory, error)

	// Share returns how another process opens memory: the device's number, a handle, and where m
	// begins there, in bytes; and the handle of an event that comes to pass when the device has
	// written m, or nil where it has. Share waits for the device only where it can make no more
	// events. Memory of no bytes needs no handle. The caller calls done once, when the receiver has
	// given the memory back, or it was not sent.
	Share(m Memory) (ordinal int, handle [64]byte, off int, event []byte, done func() error, err error)
}
