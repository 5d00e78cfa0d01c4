package torch

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A process identifies a process uniquely: the kernel reuses a process ID only with another
// start time. The zero process is unknown.
type process struct {
	pid   int
	start uint64
}

// anyone is an unknown process, which is considered alive.
var anyone = process{}

func (p process) isAlive() bool {
	if p == anyone {
		return true
	}
	start, err := sys.StartTime(p.pid)
	return err == nil && start == p.start
}

// A peer describes the process at the other end of a connection. The zero peer is unknown, and
// is considered alive.
type peer struct {
	process
	seesProc bool // it can open files in the /proc of this process
}

// peerOf asks the kernel for the peer of a Unix socket. It returns the zero peer for any other
// stream, and if the peer has ended.
func peerOf(s stream) peer {
	c, ok := s.(*sys.Conn)
	if !ok {
		return peer{}
	}
	uid, pid, err := sys.PeerUID(c)
	if err != nil {
		return peer{}
	}
	return newPeer(uid, pid)
}

func newPeer(uid, pid int) peer {
	start, err := sys.StartTime(pid)
	if err != nil {
		return peer{}
	}
	return peer{process{pid, start}, uid == os.Getuid() && samePIDs(pid)}
}

// samePIDs reports whether a process is in the PID namespace of this one. It returns false if
// that cannot be determined.
func samePIDs(pid int) bool {
	mine, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return err == nil && mine == theirs
}

// parentPeer returns the process that started this one, or the zero peer if it has ended.
func parentPeer() peer { return newPeer(os.Getuid(), os.Getppid()) }
