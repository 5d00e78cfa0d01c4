//go:build !linux

package sys

import "os"

// SendFiles needs Linux.
func SendFiles(c *Conn, msg []byte, files ...*os.File) error {
	return unsupportedError("SCM_RIGHTS")
}

// RecvFiles needs Linux.
func RecvFiles(c *Conn, msg []byte, limit int) (n int, files []*os.File, err error) {
	return 0, nil, unsupportedError("SCM_RIGHTS")
}

// TakeFiles needs Linux.
func TakeFiles(socket *os.File, msg []byte, limit int) (n int, files []*os.File, err error) {
	return 0, nil, unsupportedError("SCM_RIGHTS")
}

// PeerUID needs Linux.
func PeerUID(c *Conn) (uid, pid int, err error) { return -1, 0, unsupportedError("SO_PEERCRED") }

// PeerPidfd needs Linux.
func PeerPidfd(c *Conn) (*Pidfd, error) { return nil, unsupportedError("SO_PEERPIDFD") }
