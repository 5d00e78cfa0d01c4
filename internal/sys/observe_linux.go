package sys

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// PipeBytes returns the number of unread bytes in a pipe. path is usually a descriptor of another
// process, such as /proc/PID/fd/3. The pipe has one more reader while the call lasts.
func PipeBytes(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		return 0, &os.PathError{Op: "ioctl TIOCINQ", Path: path, Err: err}
	}
	return n, nil
}

// A UnixSocket is a connected Unix socket of this network namespace. Inode and Peer are the
// inode numbers of the socket and of the other end.
type UnixSocket struct {
	Inode, Peer uint32
	Unread      uint32 // bytes that its process has not read
}

// Constants of <linux/sock_diag.h> and <linux/unix_diag.h>.
const (
	sockDiagByFamily = 20
	showPeer         = 0x04
	showQueue        = 0x10
	attributePeer    = 2
	attributeQueue   = 4
	diagHeader       = 16 // size of struct unix_diag_msg
)

// UnixSockets returns the connected Unix sockets. It needs no privilege, but the kernel must have
// UNIX_DIAG.
//
// https://man7.org/linux/man-pages/man7/sock_diag.7.html
func UnixSockets() ([]UnixSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("list Unix sockets: %w", err)
	}
	defer unix.Close(fd)
	request := make([]byte, unix.SizeofNlMsghdr+24)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.SizeofNlMsghdr:]
	body[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(body[4:], 1<<unix.BPF_TCP_ESTABLISHED)
	binary.NativeEndian.PutUint32(body[12:], showPeer|showQueue)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("list Unix sockets: %w", err)
	}
	var all []UnixSocket
	for buffer := make([]byte, 1<<16); ; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return nil, fmt.Errorf("list Unix sockets: %w", err)
		}
		var done bool
		if all, done, err = appendSockets(all, buffer[:n]); err != nil || done {
			return all, err
		}
	}
}

// appendSockets decodes one datagram of netlink messages, and returns all with the connected
// sockets in it appended. done is true after the last message of the list. An error message of
// the kernel becomes the error.
func appendSockets(all []UnixSocket, data []byte) (_ []UnixSocket, done bool, err error) {
	for len(data) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(data))
		if size < unix.SizeofNlMsghdr || size > len(data) {
			return all, false, fmt.Errorf("list Unix sockets: message of %d bytes, want at most %d", size, len(data))
		}
		body := data[unix.SizeofNlMsghdr:size]
		switch binary.NativeEndian.Uint16(data[4:]) {
		case unix.NLMSG_DONE:
			return all, true, nil
		case unix.NLMSG_ERROR:
			code := unix.EIO
			if len(body) >= 4 {
				code = unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			}
			return all, false, fmt.Errorf("list Unix sockets: %w", code)
		case sockDiagByFamily:
			if s, ok := parseSocket(body); ok {
				all = append(all, s)
			}
		}
		data = data[min((size+3)&^3, len(data)):]
	}
	return all, false, nil
}

// parseSocket decodes a unix_diag_msg and its attributes. ok is false if the message is too
// short or the socket has no peer.
func parseSocket(body []byte) (s UnixSocket, ok bool) {
	if len(body) < diagHeader {
		return s, false
	}
	s.Inode = binary.NativeEndian.Uint32(body[4:])
	for at := body[diagHeader:]; len(at) >= 4; {
		size := int(binary.NativeEndian.Uint16(at))
		if size < 4 || size > len(at) {
			break
		}
		if value := at[4:size]; len(value) >= 4 {
			switch binary.NativeEndian.Uint16(at[2:]) {
			case attributePeer:
				s.Peer = binary.NativeEndian.Uint32(value)
			case attributeQueue:
				s.Unread = binary.NativeEndian.Uint32(value)
			}
		}
		at = at[min((size+3)&^3, len(at)):]
	}
	return s, s.Peer != 0
}

// OnCPU calls f on a new thread that runs on the given CPU only, waits until f returns, and
// ends the thread. If the thread cannot be moved to the CPU, OnCPU returns an error and does
// not call f.
func OnCPU(cpu int, f func()) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(cpu)
		err := unix.SchedSetaffinity(0, &set)
		if err == nil {
			f()
		} else {
			err = fmt.Errorf("move a thread to CPU %d: %w", cpu, err)
		}
		failed <- err
	}()
	return <-failed
}
