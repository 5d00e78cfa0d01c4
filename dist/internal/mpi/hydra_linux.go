package mpi

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Note [Exit handlers] MPICH 5 tells its launcher, Hydra, that a process has finalized. It does so
// in a C exit handler and not in MPI_Finalize, but a Go process exits without running C exit
// handlers. Hydra would take the exit for a failure and kill the other ranks, with exit status 0.
// After MPI_Finalize the process therefore sends the message itself, in the format that the library
// uses. If the library has already sent it, it has also closed the descriptor.

// A hydra is the socket to Hydra, the launcher of MPICH. The zero hydra means that another
// launcher started this process, or that Hydra's version of the protocol is not supported.
type hydra struct {
	fd   int
	node uint64
}

// findHydra returns the socket that Hydra has given to this process, or the zero hydra if another
// launcher started it. Only version 1 of Hydra's PMI protocol is supported, so the result is also
// zero if the environment variable MPIR_CVAR_PMI_VERSION is not empty, whatever its value.
func findHydra(getenv func(string) string) hydra {
	fd, err := strconv.Atoi(getenv("PMI_FD"))
	if err != nil || getenv("MPI_LOCALRANKID") == "" || getenv("MPIR_CVAR_PMI_VERSION") != "" {
		return hydra{}
	}
	return hydra{fd, socketNode(fd)}
}

// socketNode returns the inode number of a socket's descriptor, or 0 if fd is not a socket.
func socketNode(fd int) uint64 {
	var s syscall.Stat_t
	if syscall.Fstat(fd, &s) != nil || s.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return 0
	}
	return s.Ino
}

// finalize tells Hydra that this process has finalized, and waits up to 10 seconds for the
// acknowledgement. It must be called after MPI_Finalize. It returns nil without a message if h
// is zero or the library has told Hydra already.
func (h hydra) finalize() error {
	if h.node == 0 || socketNode(h.fd) != h.node {
		return nil
	}
	line := []byte("cmd=finalize\n")
	if err := syscall.Sendto(h.fd, line, syscall.MSG_NOSIGNAL, nil); err != nil {
		return nil // closed by Hydra, so it knows
	}
	limit := syscall.Timeval{Sec: 10}
	if err := syscall.SetsockoptTimeval(h.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	for answer := ""; !strings.Contains(answer, "cmd=finalize_ack"); {
		b := make([]byte, 256)
		n, err := syscall.Read(h.fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("wait for Hydra, the launcher of MPICH", err)
		}
		if n == 0 {
			return nil
		}
		answer += string(b[:n])
	}
	return nil
}
