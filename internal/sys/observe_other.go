//go:build !linux

package sys

// A UnixSocket is a connected Unix socket.
type UnixSocket struct {
	Inode, Peer uint32
	Unread      uint32
}

// PipeBytes needs Linux.
func PipeBytes(path string) (int, error) { return 0, unsupportedError("ioctl") }

// UnixSockets needs Linux.
func UnixSockets() ([]UnixSocket, error) { return nil, unsupportedError("sock_diag") }

// OnCPU needs Linux.
func OnCPU(cpu int, f func()) error { return unsupportedError("sched_setaffinity") }
