package torch

import (
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sentinel"
)

// The errors of this package may be wrapped. Callers must test for them with [errors.Is].
var (
	// ErrAuth is wrapped if the peer uses another authkey, or none.
	ErrAuth = errors.New("torch: authentication failed")
	// ErrProtocol is wrapped if the peer violates the protocol of multiprocessing or torch.
	ErrProtocol = value.ErrProtocol
	// ErrTooLong is wrapped if a message is longer than [Options.MaxMessage].
	ErrTooLong = errors.New("torch: message too long")
	// ErrClosed is wrapped if the connection is closed, or if it broke in the middle of a message.
	ErrClosed = sentinel.New("torch: connection closed", os.ErrClosed)
	// ErrLocked is returned by [Semaphore.TryAcquire] if no permit is available.
	ErrLocked = errors.New("torch: no semaphore permit available")
	// ErrUnsupported is wrapped if a value has no representation in Python, or none in Go.
	ErrUnsupported = value.ErrUnsupported
	// ErrNoKey is wrapped if a tensor can be sent or received only with the authkey of the peer,
	// and [Options.AuthKey] is empty.
	ErrNoKey = errors.New(
		"torch: Options.AuthKey is empty: set it, and set multiprocessing.current_process().authkey to the same " +
			"key before the first tensor is sent")
	// ErrGone is wrapped if the memory that a message refers to no longer exists, because its
	// sender ended too early, or because another process received the message before.
	ErrGone = errors.New(
		"torch: memory no longer exists: data is lost if its sender exits before it is received, and can be " +
			"received only once: " +
			"let the sender wait for an answer, or start it with torch.Spawn (docs/torch.md, \"When the sender ends\")")
	// ErrUnfetched is wrapped if other processes have not fetched all tensors that this process
	// sent, and it is about to end; see [Drain].
	ErrUnfetched = errors.New("torch: sent memory has not been received")
	// ErrTruncated is wrapped if a file is shorter than the tensors in it: when they are received
	// or, within [Guard], when they are accessed.
	ErrTruncated = errors.New("torch: memory was truncated")
	// ErrArena is wrapped if a tensor to be sent lies in the memory of a Shoal domain. The caller
	// should send a clone of it, or allocate it with [Empty].
	ErrArena = errors.New("torch: tensor is in Shoal's shared memory: clone it, or allocate it with torch.Empty")
	// ErrCUDA is wrapped if a tensor in GPU memory was to be converted to a *tensor.Tensor. The
	// caller should set [Options.CUDA], receive the tensor as a *[CUDATensor], or call .cpu() in
	// Python before the send.
	ErrCUDA = fmt.Errorf("%w: tensor is in GPU memory", ErrUnsupported)
	// ErrGlobal is wrapped together with [ErrUnsupported] if a message refers to a name that is not
	// on the list of allowed names. The error text contains the name.
	ErrGlobal = pickle.ErrGlobal
)

// The errors are registered, so that [errors.Is] also finds them in the process that started a
// worker.
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

// These are short names for the functions that this package calls most often.
var (
	protocolError = value.Malformed
	unsupported   = value.Unsupported
	named         = value.Named
)
