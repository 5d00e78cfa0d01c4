package sys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// scmMaxFiles is the kernel's SCM_MAX_FD: the maximum number of descriptors in one message:
// https://github.com/torvalds/linux/blob/v6.12/include/net/scm.h.
const scmMaxFiles = 253

// SendFiles sends msg over c, and the files with its first byte. It panics if msg is empty. It
// waits until all of msg is written. The caller keeps the files' ownership. A message can carry
// at most 253 files; the kernel refuses more with EINVAL.
func SendFiles(c *Conn, msg []byte, files ...*os.File) error {
	if len(msg) == 0 {
		panic("sys: SendFiles: want at least 1 byte to attach the files to")
	}
	return withDescriptors(files, nil, func(fds []int) error {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		n, err := c.sendMessage(msg, rights)
		if err == nil && n < len(msg) { // a stream may accept only part of it
			_, err = c.Write(msg[n:])
		}
		if err != nil {
			return fmt.Errorf("send %d files: %w", len(files), err)
		}
		return nil
	})
}

func (c *Conn) sendMessage(msg, oob []byte) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	err = retryWhenReady(raw.Write, func(fd int) (err error) {
		n, err = unix.SendmsgN(fd, msg, oob, nil, unix.MSG_NOSIGNAL)
		return err
	})
	return n, err
}

func (c *Conn) receiveMessage(msg, oob []byte) (n, oobn, flags int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, 0, err
	}
	err = retryWhenReady(raw.Read, func(fd int) (err error) {
		n, oobn, flags, _, err = unix.Recvmsg(fd, msg, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err == nil && n == 0 && oobn == 0 {
		err = io.EOF
	}
	return n, oobn, flags, err
}

// withDescriptors calls do with fds, followed by the files' descriptors, which stay open until
// do returns, and returns the error of do.
func withDescriptors(files []*os.File, fds []int, do func(fds []int) error) error {
	if len(files) == 0 {
		return do(fds)
	}
	return withDescriptor(files[0], func(fd int) error {
		return withDescriptors(files[1:], append(fds, fd), do)
	})
}

// controlRooms is a pool of control message buffers. Each has room for as many descriptors as the
// kernel ever sends, so a truncated list can only be caused by a full descriptor table.
var controlRooms = sync.Pool{New: func() any {
	b := make([]byte, unix.CmsgSpace(4*scmMaxFiles))
	return &b
}}

// RecvFiles reads one message into msg, and receives at most limit files with it,
// close-on-exec. n is the number of bytes read. The caller must close the files. RecvFiles
// returns [ErrNoDescriptors] if this process had no room for all files, an error that wraps
// [ErrTooManyFiles] if the peer sent more than limit, and one that wraps [io.EOF] at the end of
// the connection. On an error no file is kept open.
func RecvFiles(c *Conn, msg []byte, limit int) (n int, files []*os.File, err error) {
	return receiveFiles(limit, func(oob []byte) (n, oobn, flags int, err error) { return c.receiveMessage(msg, oob) })
}

// TakeFiles is [RecvFiles] for an end of [BlockingPair]. It never waits. The error wraps EAGAIN
// if there is no message.
func TakeFiles(socket *os.File, msg []byte, limit int) (n int, files []*os.File, err error) {
	return receiveFiles(limit, func(oob []byte) (n, oobn, flags int, err error) {
		err = withDescriptor(socket, func(fd int) error {
			return retryInterrupted(func() (err error) {
				n, oobn, flags, _, err = unix.Recvmsg(fd, msg, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
				return err
			})
		})
		if err == nil && n == 0 && oobn == 0 {
			err = io.EOF
		}
		return n, oobn, flags, err
	})
}

// receiveFiles calls receive with a buffer for control messages, and returns the results of
// [RecvFiles]. oobn is the length of the control messages received, and flags are the flags of
// recvmsg.
func receiveFiles(limit int, receive func(oob []byte) (n, oobn, flags int, err error)) (n int, files []*os.File,
	err error) {
	oob := controlRooms.Get().(*[]byte)
	defer controlRooms.Put(oob)
	n, oobn, flags, err := receive(*oob)
	if err != nil {
		return 0, nil, fmt.Errorf("receive files: %w", err)
	}
	fds, err := parseDescriptors((*oob)[:oobn])
	switch {
	case err != nil:
		err = fmt.Errorf("receive files: %w", err)
	case flags&unix.MSG_CTRUNC != 0:
		err = ErrNoDescriptors
	case len(fds) > limit:
		err = fmt.Errorf("%w: got %d, want at most %d", ErrTooManyFiles, len(fds), limit)
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return n, nil, err
	}
	for _, fd := range fds {
		files = append(files, newFile(fd, fmt.Sprintf("received %d", fd)))
	}
	return n, files, nil
}

// parseDescriptors returns all descriptors in a control message buffer, even if it also returns
// an error. The caller must close them.
func parseDescriptors(oob []byte) (fds []int, err error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	for i := range msgs {
		if msgs[i].Header.Level != unix.SOL_SOCKET || msgs[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		more, failed := unix.ParseUnixRights(&msgs[i])
		fds = append(fds, more...)
		err = errors.Join(err, failed)
	}
	return fds, err
}

// PeerUID returns the user and the process that connected c, or listened for c, as recorded by
// the kernel at that time: https://man7.org/linux/man-pages/man7/unix.7.html. With an error uid
// is -1.
func PeerUID(c *Conn) (uid, pid int, err error) {
	err = withDescriptor(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid, pid = int(cred.Uid), int(cred.Pid)
		}
		return err
	})
	if err != nil {
		return -1, 0, fmt.Errorf("read peer credentials: %w", err)
	}
	return uid, pid, nil
}

// PeerPidfd returns a handle to the process at the other end of c. The caller must close it.
func PeerPidfd(c *Conn) (*Pidfd, error) {
	fd := -1
	err := withDescriptor(c, func(s int) (err error) {
		fd, err = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		return err
	})
	switch err {
	case nil:
		return newPidfd(fd)
	case unix.ENOPROTOOPT: // before Linux 6.5
		return peerByNumber(c)
	}
	return nil, fmt.Errorf("open pidfd of the peer: %w", err)
}

// peerByNumber is [PeerPidfd] for kernels without SO_PEERPIDFD. It opens the peer by its
// process number, and verifies that the number was not reassigned in between. The start time of
// the process has not changed, and the peer's end of the socket is still open, so the process
// recorded at connection time has not ended. (A child that inherited the socket can keep it
// open. In that case the handle may refer to another process, and does not prove the peer's
// death.) The error wraps [os.ErrProcessDone] if the peer has ended.
func peerByNumber(c *Conn) (*Pidfd, error) {
	_, pid, err := PeerUID(c)
	if err != nil {
		return nil, err
	}
	before, err := StartTime(pid)
	if err != nil {
		return nil, err
	}
	p, err := OpenPidfd(pid)
	if err != nil {
		return nil, err
	}
	after, err := StartTime(pid)
	if err == nil && before == after {
		err = withDescriptor(c, hangUpError)
	} else if err == nil {
		err = os.ErrProcessDone
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("open pidfd of peer process %d: %w", pid, err)
	}
	return p, nil
}

// hangUpError returns [os.ErrProcessDone] if the other end of the socket is closed, and nil if
// it is open.
func hangUpError(fd int) error {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	err := retryInterrupted(func() error { _, err := unix.Poll(fds, 0); return err })
	if err == nil && fds[0].Revents&unix.POLLHUP != 0 {
		return os.ErrProcessDone
	}
	return err
}
