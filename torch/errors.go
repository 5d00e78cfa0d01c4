package torch

import (
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// These errors may be wrapped. Test for them with errors.Is.
var (
	// ErrAuth is wrapped if the other side has another authkey, or none.
	ErrAuth = errors.New("torch: authentication failed")
	// ErrProtocol is wrapped if the other side does not speak the protocol.
	ErrProtocol = value.ErrProtocol
	// ErrTooLong is wrapped if a message is longer than Options.MaxMessage.
	ErrTooLong = errors.New("torch: message too long")
	// ErrClosed is wrapped if a connection was closed, or broken off in the middle of a message.
	ErrClosed = fmt.Errorf("torch: connection is closed%.0w", os.ErrClosed)
	// ErrLocked is returned by TryAcquire if there is no permit.
	ErrLocked = errors.New("torch: semaphore has no permit")
	// ErrUnsupported is wrapped if a value has no form on the other side, or in Go.
	ErrUnsupported = value.ErrUnsupported
	// ErrNoKey is wrapped if a tensor needs the authkey of the other process, and Options has none.
	ErrNoKey = errors.New(
		"torch: Options.AuthKey is needed, and multiprocessing.current_process().authkey set to it before the first tensor is sent")
	// ErrGone is wrapped if the memory that a message names no longer exists: its sender has ended
	// too early, or a process has received it before.
	ErrGone = errors.New(
		"torch: memory is gone: what a process sends is lost if that process ends before it is received, and can be received once; " +
			"have the sender wait for an answer, or start it by torch.Spawn (docs/torch.md, \"When the sender ends\")")
	// ErrUnfetched is wrapped if a process is about to end, and other processes have not yet
	// fetched the tensors that it has sent; see Drain.
	ErrUnfetched = errors.New("torch: memory that was sent has not been fetched")
	// ErrTruncated is wrapped if memory is shorter than the tensors in it, at arrival or, in Guard,
	// later.
	ErrTruncated = errors.New("torch: memory was truncated")
	// ErrArena is wrapped if a tensor that is to be sent lives in the memory of a Shoal domain.
	// Send a Clone, or allocate it with Empty.
	ErrArena = errors.New("torch: tensor is shared with processes of Shoal; clone it or allocate it with torch.Empty")
	// ErrCUDA is wrapped if a tensor in the memory of a GPU was to become a *tensor.Tensor. Set
	// Options.CUDA, receive it as a *CUDATensor, or call .cpu() first.
	ErrCUDA = fmt.Errorf("%w: tensor is in the memory of a GPU", ErrUnsupported)
	// ErrGlobal is wrapped, with ErrUnsupported, if a message has a name that is not on the list of
	// allowed names; the text has the name.
	ErrGlobal = pickle.ErrGlobal
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("torch.ErrAuth", ErrAuth)
	codec.RegisterError("torch.ErrProtocol", ErrProtocol)
	codec.RegisterError("torch.ErrTooLong", ErrTooLong)
	codec.RegisterError("torch.ErrClosed", ErrClosed)
	codec.RegisterError("torch.ErrLocked", ErrLocked)
	codec.RegisterError("torch.ErrNoKey", ErrNoKey)
	codec.RegisterError("torch.ErrGone", ErrGone)
	codec.RegisterError("torch.ErrTruncated", ErrTruncated)
	codec.RegisterError("torch.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("torch.ErrUnfetched", ErrUnfetched)
	codec.RegisterError("torch.ErrArena", ErrArena)
	codec.RegisterError("torch.ErrCUDA", ErrCUDA)
	codec.RegisterError("torch.ErrGlobal", ErrGlobal)
	codec.RegisterError("torch.ErrNoRank", ErrNoRank)
}

// These are short names of functions that this package calls most.
var (
	protocolError = value.Malformed
	unsupported   = value.Unsupported
	named         = value.Named
)
