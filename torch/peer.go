package torch

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A process identifies a process for all time: the kernel gives a number again, with another start.
type process struct {
	pid   int
	start uint64
}

// anyone is an unknown process, which counts as alive.
var anyone = process{}

func (p process) alive() bool {
	if p == anyone {
		return true
	}
	start, err := sys.StartTime(p.pid)
	return err == nil && start == p.start
}

// A peer describes the process at the other end of a connection.
type peer struct {
	process
	seesProc bool // it can open files in this process's /proc
}

// peerOf asks the kernel. Of a connection that is no Unix socket nothing is known.
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

// samePIDs reports whether a process is in this one's PID namespace.
func samePIDs(pid int) bool {
	mine, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return err == nil && mine == theirs
}

// parentPeer is the process that has started this one.
func parentPeer() peer { return newPeer(os.Getuid(), os.Getppid()) }
