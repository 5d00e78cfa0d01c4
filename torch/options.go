package torch

import (
	"crypto/rand"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// processKey is the authkey of this process, as multiprocessing.current_process().authkey is one of
// Python's: of all that it starts, and of the Python that has started it.
var processKey = sync.OnceValue(func() []byte { return []byte(rand.Text() + rand.Text()) })

// A Strategy says how the memory of a tensor is made known to PyTorch. Whatever it is, both of
// PyTorch's own are received.
type Strategy string

const (
	// Auto is Proc where the other process is known to see this one's /proc, and FileDescriptor
	// otherwise.
	Auto Strategy = ""
	// FileDescriptor sends descriptors over a socket, as PyTorch does by default on Linux. It needs
	// the authkey.
	FileDescriptor Strategy = "file_descriptor"
	// FileSystem names files in /dev/shm that are counted, as
	// torch.multiprocessing.set_sharing_strategy("file_system") does.
	FileSystem Strategy = "file_system"
	// Proc lets PyTorch open /proc/<pid>/fd/<n>: several times as fast as FileDescriptor, and
	// without authkey. Both processes must be of one user and one PID namespace.
	Proc Strategy = "proc"
)

// Options says how to speak with processes of PyTorch. The zero value is usable where no key is
// needed.
type Options struct {
	// AuthKey is the key of connections, and the current_process().authkey of the processes behind
	// them, by which they give descriptors away. With no key connections have no handshake.
	AuthKey []byte
	// Strategy is how tensors are sent.
	Strategy Strategy
	// Protocol is the version of pickles that are sent, 2 to 5; 0 stands for 4.
	Protocol int
	// CUDA opens tensors in the memory of a GPU that are received, and shares those that are sent.
	// The program imports package cuda, or both are errors that wrap ErrUnsupported. Without CUDA
	// such tensors are received as a *CUDATensor, and none is sent.
	CUDA bool
	// MaxMessage bounds the bytes of a received message, the memory of tensors not counted; 0
	// stands for 1 GiB.
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
