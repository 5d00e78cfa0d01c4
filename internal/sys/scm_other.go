//go:build !linux

package sys

import "os"

// SendFiles returns an error that wraps [errors.ErrUnsupported]: sending files over a socket
// needs Linux.
func SendFiles(c *Conn, msg []byte, files ...*os.File) error {
	return unsupportedError("SCM_RIGHTS")
}

// RecvFiles returns an error that wraps [errors.ErrUnsupported]: receiving files over a socket
// needs Linux.
func RecvFiles(c *Conn, msg []byte, limit int) (n int, files []*os.File, err error) {
	return 0, nil, unsupportedError("SCM_RIGHTS")
}

// TakeFiles returns an error that wraps [errors.ErrUnsupported]: receiving files over a socket
// needs Linux.
func TakeFiles(socket *os.File, msg []byte, limit int) (n int, files []*os.File, err error) {
	return 0, nil, unsupportedError("SCM_RIGHTS")
}

// PeerUID returns an error that wraps [errors.ErrUnsupported]: reading the credentials of a
// peer needs Linux.
func PeerUID(c *Conn) (uid, pid int, err error) { return -1, 0, unsupportedError("SO_PEERCRED") }

// PeerPidfd returns an error that wraps [errors.ErrUnsupported]: a handle to a process needs
// Linux.
func PeerPidfd(c *Conn) (*Pidfd, error) { return nil, unsupportedError("SO_PEERPIDFD") }
