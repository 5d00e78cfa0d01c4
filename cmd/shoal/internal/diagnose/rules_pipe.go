package diagnose

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A pipeWait is a process that was blocked in recv or send of a duplex Pipe during the whole
// observation. Such a Pipe is a pair of Unix sockets.
type pipeWait struct {
	pid        int
	sends      bool
	own, other sys.UnixSocket
}

// unixSockets returns the connected Unix sockets by inode. It reads them once for a job. If that
// fails, it adds a note and returns an empty map.
func (j *job) unixSockets() map[uint32]sys.UnixSocket {
	if j.sockets != nil {
		return j.sockets
	}
	j.sockets = make(map[uint32]sys.UnixSocket)
	all, err := sys.UnixSockets()
	if err != nil {
		j.notes = append(j.notes, "deadlocks of duplex Pipes cannot be seen: "+err.Error())
	}
	for _, s := range all {
		j.sockets[s.Inode] = s
	}
	return j.sockets
}

// pipeWaits returns the processes that were blocked in a duplex Pipe, as far as the other end of
// their socket is known.
func (j *job) pipeWaits() (all []pipeWait) {
	const file = "multiprocessing/connection.py"
	for _, p := range j.living() {
		t, stuck := j.stuckIn(p.PID)
		f, ok := fileOf(p, t)
		s, known := stackOf(j.last.stacks[p.PID], p.PID)
		if !stuck || !ok || !known || f.Socket() == "" {
			continue
		}
		w := pipeWait{pid: p.PID, sends: indexFunction(s, "_send", file) >= 0}
		receives := indexFunction(s, "_recv", file) >= 0
		if !(w.sends && kindOf(t) == waitWrite || receives && kindOf(t) == waitRead) {
			continue
		}
		var inode uint32
		if _, err := fmt.Sscan(f.Socket(), &inode); err != nil {
			continue
		}
		w.own = j.unixSockets()[inode]
		if w.own.Peer != 0 {
			w.other = j.unixSockets()[w.own.Peer]
			all = append(all, w)
		}
	}
	return all
}

// findPipeDeadlocks finds two processes that both receive from, or both send to, the two ends of a
// duplex Pipe. The processes must not have other threads, and all other processes with an end must
// be blocked, too.
func findPipeDeadlocks(j *job) (found []Finding) {
	waits := j.pipeWaits()
	for i, a := range waits {
		for _, b := range waits[i+1:] {
			if a.own.Peer != b.own.Inode || a.sends != b.sends || !a.sends && a.own.Unread+b.own.Unread > 0 {
				continue
			}
			if reason := j.mayContinue(a, b); reason != "" {
				j.notes = append(j.notes, fmt.Sprintf("%s and %s wait for the two ends of one Pipe, but %s",
					j.label(a.pid), j.label(b.pid), reason))
				continue
			}
			f := Finding{Rule: "deadlock-between-processes", PID: a.pid, weight: weightDeadlock,
				Cause: fmt.Sprintf("%s and %s wait for each other: both receive from one Pipe, and none sends",
					j.label(a.pid), j.label(b.pid)),
				Cure: "one side must send first; poll(timeout) before recv() lets a process notice that no message " +
					"comes"}
			if a.sends {
				f.Cause = fmt.Sprintf("%s and %s wait for each other: both send to one Pipe, the buffers are full, "+
					"and none receives", j.label(a.pid), j.label(b.pid))
				f.Cure = "receive between the sends, or send from a thread: send() of a message that is larger " +
					"than the buffer waits until the other side receives"
			}
			for _, w := range []pipeWait{a, b} {
				f.Evidence = append(f.Evidence, evidence("%s is blocked on socket %d, the peer of socket %d, with "+
					"%s to read", j.label(w.pid), w.own.Inode, w.own.Peer, words.Bytes(int64(w.own.Unread))))
				f.Evidence = j.appendPlace(f.Evidence, w.pid)
			}
			found = append(found, f)
		}
	}
	return found
}

// mayContinue returns the reason why the wait of two processes for each other may end, or "" if
// it cannot.
func (j *job) mayContinue(a, b pipeWait) string {
	for _, w := range []pipeWait{a, b} {
		for _, s := range j.last.stacks[w.pid] {
			helper := indexFunction(s, "_feed", "multiprocessing/queues.py") >= 0 ||
				indexFunction(s, "_serve", "multiprocessing/resource_sharer.py") >= 0
			if s.TID != w.pid && !helper {
				return fmt.Sprintf("%s has other threads", j.label(w.pid))
			}
		}
		for _, e := range j.pipes()[fmt.Sprintf("socket:[%d]", w.own.Inode)] {
			if e.pid != a.pid && e.pid != b.pid && !j.isBlocked(e.pid) {
				return fmt.Sprintf("process %d has an end, too", e.pid)
			}
		}
	}
	return ""
}

// isBlocked reports whether a process cannot continue by itself: its main thread was in one wait
// without a timeout during the whole observation.
func (j *job) isBlocked(pid int) bool {
	t, stuck := j.stuckIn(pid)
	if !stuck {
		return false
	}
	switch kindOf(t) {
	case waitRead, waitWrite, waitChild, waitFileLock, waitStop:
		return true
	case waitFutex:
		return t.Call.Number >= 0 && t.Call.Args[3] == 0
	}
	return false
}

// endName returns the identity of a pipe or a socket, such as "pipe:[1234]", or "" for other
// files.
func endName(f procfs.File) string {
	if strings.HasPrefix(f.Target, "pipe:[") || strings.HasPrefix(f.Target, "socket:[") {
		return f.Target
	}
	return ""
}
