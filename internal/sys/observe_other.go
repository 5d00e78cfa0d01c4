//go:build !linux

package sys

// A UnixSocket is a connected Unix socket.
type UnixSocket struct {
	Inode, Peer uint32
	Unread      uint32
}

// PipeBytes returns an error that wraps [errors.ErrUnsupported]: counting the unread bytes of a
// pipe needs Linux.
func PipeBytes(path string) (int, error) { return 0, unsupportedError("ioctl") }

// UnixSockets returns an error that wraps [errors.ErrUnsupported]: listing Unix sockets needs
// Linux.
func UnixSockets() ([]UnixSocket, error) { return nil, unsupportedError("sock_diag") }

// OnCPU returns an error that wraps [errors.ErrUnsupported]: a thread on one CPU, where f would
// be called, needs Linux.
func OnCPU(cpu int, f func()) error { return unsupportedError("sched_setaffinity") }
