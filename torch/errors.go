package torch

import (
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// What may go wrong. Test for them with errors.Is.
var (
	// ErrAuth is wrapped where the other side has another authkey, or none.
	ErrAuth = errors.New("torch: authentication failed")
	// ErrProtocol is wrapped where the other side does not speak the protocol.
	ErrProtocol = value.ErrProtocol
	// ErrTooLong is wrapped where a message is longer than Options.MaxMessage.
	ErrTooLong = errors.New("torch: message too long")
	// ErrClosed is wrapped where a connection was closed, or broken off in the middle of a message.
	ErrClosed = fmt.Errorf("torch: connection is closed%.0w", os.ErrClosed)
	// ErrLocked is what TryAcquire returns where there is no permit.
	ErrLocked = errors.New("torch: semaphore has no permit")
	// ErrUnsupported is wrapped where a value has no form on the other side, or in Go.
	ErrUnsupported = value.ErrUnsupported
	// ErrNoKey is wrapped where a tensor needs the authkey of the other process, and Options has
	// none.
	ErrNoKey = errors.New(
		"torch: Options.AuthKey is needed, and multiprocessing.current_process().authkey set to it before the first tensor is sent")
	// ErrGone is wrapped where memory that a message names exists no more: its sender ended too
	// early, or it was received before.
	ErrGone = errors.New(
		"torch: memory is gone: what a process sends is lost if that process ends before it is received, and can be received once; " +
			"have the sender wait for an answer, or start it by torch.Spawn (docs/torch.md, \"When the sender ends\")")
	// ErrUnfetched is wrapped where a process is to end, and others have not fetched yet what it
	// has sent; see Drain.
	ErrUnfetched = errors.New("torch: memory that was sent has not been fetched")
	// ErrTruncated is wrapped where memory is shorter than the tensors in it, at arrival or, in
	// Guard, later.
	ErrTruncated = errors.New("torch: memory was truncated")
	// ErrArena is wrapped where a tensor is sent that lives in the memory of a Shoal domain. Send a
	// Clone, or allocate it with Empty.
	ErrArena = errors.New("torch: tensor is shared with processes of Shoal; clone it or allocate it with torch.Empty")
	// ErrCUDA is wrapped where a tensor in the memory of a GPU was to become a *tensor.Tensor;
	// receive it as a *CUDATensor, or call .cpu() first.
	ErrCUDA = fmt.Errorf("%w: tensor is in the memory of a GPU", ErrUnsupported)
	// ErrGlobal is wrapped where a message names what is not on the list of what may be used; see
	// pickle's GlobalError for the name.
	ErrGlobal = pickle.ErrGlobal
)

// Short names of what this package says most.
var (
	protocolError = value.Malformed
	unsupported   = value.Unsupported
	named         = value.Named
)
