package mpi

import (
	"strconv"
	"syscall"
	"testing"
)

// A process tells Hydra that it has left, unless the library has closed the socket, or another file
// has its number by then.
func TestHydra_IsToldOnce(t *testing.T) {
	pair := func() [2]int {
		t.Helper()
		p, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	find := func(fd int) hydra {
		return findHydra(func(name string) string {
			return map[string]string{"PMI_FD": strconv.Itoa(fd), "MPI_LOCALRANKID": "0"}[name]
		})
	}
	told := make([]byte, 64)

	open := pair()
	defer syscall.Close(open[0])
	defer syscall.Close(open[1])
	for _, part := range []string{"cmd=finali", "ze_ack rc=0\n"} { // Hydra answers in pieces
		if _, err := syscall.Write(open[1], []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := find(open[0]).finalize(); err != nil {
		t.Error(err)
	}
	if n, err := syscall.Read(open[1], told); string(told[:max(n, 0)]) != "cmd=finalize\n" {
		t.Errorf("Hydra is told %q, %v", told[:max(n, 0)], err)
	}

	closed := pair()
	h := find(closed[0])
	syscall.Close(closed[0])
	other := pair() // the first of which has the number now
	defer syscall.Close(closed[1])
	defer syscall.Close(other[0])
	defer syscall.Close(other[1])
	if other[0] != closed[0] {
		t.Logf("descriptor %d was not used again, but %d", closed[0], other[0])
	}
	if err := h.finalize(); err != nil {
		t.Error(err)
	}
	if n, _, err := syscall.Recvfrom(other[1], told, syscall.MSG_DONTWAIT); err != syscall.EAGAIN {
		t.Errorf("a socket that is not Hydra's got %q, %v", told[:max(n, 0)], err)
	}

	gone := pair()
	defer syscall.Close(gone[0])
	syscall.Close(gone[1])
	if err := find(gone[0]).finalize(); err != nil {
		t.Errorf("Hydra has gone: %v", err)
	}
	if h := findHydra(func(string) string { return "" }); h.finalize() != nil || h.node != 0 {
		t.Errorf("no Hydra is %+v", h)
	}
}
