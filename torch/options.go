package torch

import (
	"crypto/rand"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// processKey is the authkey of this process, as multiprocessing.current_process().authkey is one of
// Python's. All processes that it starts have the same key, and so has the Python that has started
// it.
var processKey = sync.OnceValue(func() []byte { return []byte(rand.Text() + rand.Text()) })

// A Strategy says how a message names the memory of a tensor to PyTorch. Under each of them a
// process receives both of PyTorch's strategies, file_descriptor and file_system.
type Strategy string

const (
	// Auto is Proc if the other process is known to see this one's /proc, and FileDescriptor
	// otherwise.
	Auto Strategy = ""
	// FileDescriptor sends descriptors over a socket, as PyTorch does by default on Linux. It needs
	// the authkey.
	FileDescriptor Strategy = "file_descriptor"
	// FileSystem names counted files in /dev/shm, as
	// torch.multiprocessing.set_sharing_strategy("file_system") does.
	FileSystem Strategy = "file_system"
	// Proc lets PyTorch open /proc/<pid>/fd/<n>. It is several times as fast as FileDescriptor, and
	// needs no authkey. Both processes must be of one user and one PID namespace.
	Proc Strategy = "proc"
)

// Options says how to speak with processes of PyTorch. The zero value is usable without a key.
type Options struct {
	// AuthKey is the key of connections. It is also the current_process().authkey of the processes
	// behind them, by which they give descriptors away. Connections without a key have no
	// handshake.
	AuthKey []byte
	// Strategy is how tensors are sent.
	Strategy Strategy
	// Protocol is the version of pickles that are sent, 2 to 5; 0 stands for 4.
	Protocol int
	// CUDA opens received tensors that are in the memory of a GPU, and shares sent ones. It needs a
	// program that imports package cuda; in another program both are errors that wrap
	// ErrUnsupported. Without CUDA a tensor on a GPU is received as a *CUDATensor, and none is
	// sent.
	CUDA bool
	// MaxMessage bounds the bytes of a received message without the memory of its tensors; 0 stands
	// for 1 GiB.
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
