package mpi

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Note [Exit handlers] MPICH 5 tells Hydra, its launcher, that a process has left the job in order,
// but not in MPI_Finalize: it does so in an exit handler of C. A process of Go ends without these
// handlers. Hydra would take that for a failure, and kill the other ranks, with exit status 0. So
// the process tells Hydra itself, once the library has left the job, by the line that the library
// would write. A library that has told Hydra has also closed the descriptor.

// A hydra is the socket to the launcher of this process; the zero hydra is none.
type hydra struct {
	fd   int
	node uint64
}

// findHydra returns the socket that Hydra has given to this process. It speaks version 1 of its
// language, unless a user has asked the library for another one.
func findHydra(getenv func(string) string) hydra {
	fd, err := strconv.Atoi(getenv("PMI_FD"))
	if err != nil || getenv("MPI_LOCALRANKID") == "" || getenv("MPIR_CVAR_PMI_VERSION") != "" {
		return hydra{}
	}
	return hydra{fd, socketNode(fd)}
}

// socketNode returns the number of the socket of a descriptor, 0 if it is no socket.
func socketNode(fd int) uint64 {
	var s syscall.Stat_t
	if syscall.Fstat(fd, &s) != nil || s.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return 0
	}
	return s.Ino
}

// leave tells Hydra that this process has left the job, and waits until Hydra knows, unless the
// library has done so.
func (h hydra) leave() error {
	if h.node == 0 || socketNode(h.fd) != h.node {
		return nil
	}
	line := []byte("cmd=finalize\n")
	if err := syscall.Sendto(h.fd, line, syscall.MSG_NOSIGNAL, nil); err != nil {
		return nil // Hydra has closed it, so Hydra knows
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
