package torch

import (
	"crypto/rand"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// processKey returns the authkey of this process, the counterpart of
// multiprocessing.current_process().authkey. Every process that this one starts gets the same key.
// If Python started this process, the key is Python's.
var processKey = sync.OnceValue(func() []byte { return []byte(rand.Text() + rand.Text()) })

// A Strategy selects how a message refers to the memory of a tensor. It applies to sent tensors
// only: a process can receive both of PyTorch's strategies, file_descriptor and file_system, under
// each of them.
type Strategy string

const (
	// Auto selects [Proc] if the peer is known to see the /proc of this process, and
	// [FileDescriptor] otherwise.
	Auto Strategy = ""
	// FileDescriptor passes descriptors over a Unix socket, which is PyTorch's default on Linux. It
	// requires the authkey.
	FileDescriptor Strategy = "file_descriptor"
	// FileSystem refers to reference-counted files in /dev/shm, as PyTorch does after
	// torch.multiprocessing.set_sharing_strategy("file_system").
	FileSystem Strategy = "file_system"
	// Proc makes PyTorch open /proc/<pid>/fd/<n>. It is several times as fast as [FileDescriptor]
	// and requires no authkey. Both processes must belong to the same user and the same PID
	// namespace.
	Proc Strategy = "proc"
)

// Options configures the exchange with PyTorch processes. The zero value is valid for peers that
// require no authkey.
type Options struct {
	// AuthKey authenticates connections. It must also be the current_process().authkey of the
	// processes behind them, because they use it when they pass descriptors. A connection without a
	// key performs no handshake.
	AuthKey []byte
	// Strategy selects how tensors are sent.
	Strategy Strategy
	// Protocol is the pickle protocol of sent messages. It must be from 2 to 5; 0 means 4.
	Protocol int
	// CUDA opens received tensors that are in GPU memory, and shares sent ones. The program must
	// import package cuda, otherwise both fail with an error that wraps [ErrUnsupported]. Without
	// CUDA, a tensor on a GPU is received as a *[CUDATensor] and cannot be sent.
	CUDA bool
	// MaxMessage limits the size of a received message in bytes, not counting the memory of its
	// tensors. 0 means 1 GiB.
	MaxMessage int64
}

func (o Options) protocol() int {
	if o.Protocol == 0 {
		return 4
	}
	return o.Protocol
}

func (o Options) limits() pickle.Limits { return pickle.Limits{Bytes: o.maxMessage()} }

func (o Options) maxMessage() int64 {
	if o.MaxMessage == 0 {
		return 1 << 30
	}
	return o.MaxMessage
}
