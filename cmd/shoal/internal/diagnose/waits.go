package diagnose

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

// A waitKind classifies the operation that blocks a thread.
type waitKind int

const (
	waitNone     waitKind = iota // the thread runs, or its wait is unknown
	waitFutex                    // a lock, a condition or a semaphore
	waitPoll                     // readiness of descriptors
	waitRead                     // data of a descriptor
	waitWrite                    // space in a pipe or socket
	waitChild                    // the end of a child
	waitSleep                    // a timer
	waitDisk                     // a device: uninterruptible
	waitStop                     // SIGCONT or a debugger
	waitFileLock                 // flock(2) or a lock of fcntl(2)
	waitOpen                     // open(2), for example of a FIFO or of a file on a dead server
	waitConnect                  // connect(2)
)

// callKinds maps numbers of system calls to kinds of waits, by architecture.
//
// https://github.com/torvalds/linux/blob/v6.12/arch/x86/entry/syscalls/syscall_64.tbl
// https://github.com/torvalds/linux/blob/v6.12/scripts/syscall.tbl
var callKinds = map[string]map[int]waitKind{
	"amd64": {0: waitRead, 1: waitWrite, 7: waitPoll, 17: waitRead, 19: waitRead, 20: waitWrite, 23: waitPoll,
		34: waitSleep, 35: waitSleep, 42: waitConnect, 43: waitRead, 44: waitWrite, 45: waitRead, 46: waitWrite,
		47: waitRead, 61: waitChild, 72: waitFileLock, 73: waitFileLock, 202: waitFutex, 230: waitSleep,
		232: waitPoll, 247: waitChild, 257: waitOpen, 270: waitPoll, 271: waitPoll,
		281: waitPoll, 288: waitRead},
	"arm64": {22: waitPoll, 25: waitFileLock, 32: waitFileLock, 56: waitOpen, 63: waitRead,
		64: waitWrite, 65: waitRead, 66: waitWrite, 67: waitRead, 72: waitPoll, 73: waitPoll, 95: waitChild,
		98: waitFutex, 101: waitSleep, 115: waitSleep, 202: waitRead, 203: waitConnect, 206: waitWrite,
		207: waitRead, 211: waitWrite, 212: waitRead, 242: waitRead, 260: waitChild},
}

// waitNames maps parts of names of kernel functions to kinds of waits. They are used if the system
// call may not be read.
var waitNames = []struct {
	part string
	kind waitKind
}{
	{"futex", waitFutex}, {"pipe_read", waitRead}, {"pipe_write", waitWrite}, {"poll", waitPoll},
	{"do_wait", waitChild}, {"nanosleep", waitSleep}, {"skb_wait", waitRead}, {"unix_stream_read", waitRead},
	{"unix_stream_data_wait", waitRead}, {"sk_wait_data", waitRead}, {"do_select", waitPoll}, {"sigsuspend", waitSleep},
}

// kindOf classifies the wait of a thread. It returns waitNone for one that runs, has ended, or
// waits for something else.
func kindOf(t procfs.Thread) waitKind {
	switch t.State {
	case 'D':
		return waitDisk
	case 'T', 't':
		return waitStop
	case 'R', 'Z', 'X':
		return waitNone
	}
	if k, ok := callKinds[runtime.GOARCH][t.Call.Number]; ok {
		return k
	}
	for _, w := range waitNames {
		if strings.Contains(t.Wait, w.part) {
			return w.kind
		}
	}
	return waitNone
}

// Operations of futex(2) in its second argument.
const (
	futexPrivate    = 128
	futexCommand    = 127
	futexWait       = 0
	futexLockPI     = 6
	futexWaitBitset = 9
)

// isPrivateWait reports whether a thread waits, without a timeout, for a futex that only threads of
// its own process can wake.
func isPrivateWait(t procfs.Thread) bool { return isPrivateFutex(t) && t.Call.Args[3] == 0 }

// isTimedWait is like [isPrivateWait] for a wait with a timeout.
func isTimedWait(t procfs.Thread) bool { return isPrivateFutex(t) && t.Call.Args[3] != 0 }

func isPrivateFutex(t procfs.Thread) bool {
	if kindOf(t) != waitFutex || t.Call.Number < 0 {
		return false
	}
	op := t.Call.Args[1]
	switch op & futexCommand {
	case futexWait, futexLockPI, futexWaitBitset:
		return op&futexPrivate != 0
	}
	return false
}

// isGloo reports whether a thread may be one that executes collectives of Gloo. PyTorch names these
// threads since 2.4; before, they have the name of the process.
func isGloo(p *procfs.Process, t procfs.Thread) bool {
	return strings.HasPrefix(t.Name, "pt_gloo_runloop") || t.Name == p.Name
}

// describeWait returns the wait of a thread in words.
func (j *job) describeWait(p *procfs.Process, t procfs.Thread) string {
	switch kindOf(t) {
	case waitFutex:
		if m, ok := semaphoreOf(p, t); ok {
			return fmt.Sprintf("shared semaphore %s", shortName(m.Path))
		}
		return "lock or condition (futex)"
	case waitPoll:
		return "poll"
	case waitRead:
		return "read from " + j.targetOf(p, t)
	case waitWrite:
		return "write to " + j.targetOf(p, t)
	case waitChild:
		return "end of a child (wait)"
	case waitSleep:
		return "sleep"
	case waitDisk:
		return "device (uninterruptible)"
	case waitStop:
		return "stopped"
	case waitFileLock:
		return "lock of the file " + j.targetOf(p, t)
	case waitOpen:
		return "open of a file"
	case waitConnect:
		return "connection of " + j.targetOf(p, t)
	}
	switch t.State {
	case 'R':
		return "runs"
	case 'Z':
		return "ended, not reaped"
	}
	if t.Wait != "" && t.Wait != "0" {
		return t.Wait
	}
	return "unknown"
}

// targetOf returns the file that a blocked call uses, in words, with the addresses of a TCP
// socket.
func (j *job) targetOf(p *procfs.Process, t procfs.Thread) string {
	if f, ok := fileOf(p, t); ok {
		if local, remote := j.System.TCPAddresses(p.PID, f); remote != "" {
			return fmt.Sprintf("a TCP socket from %s to %s", local, remote)
		}
		return f.Target
	}
	return "a descriptor"
}

func fileOf(p *procfs.Process, t procfs.Thread) (procfs.File, bool) {
	if t.Call.Number >= 0 {
		for _, f := range p.Files {
			if f.FD == int(t.Call.Args[0]) {
				return f, true
			}
		}
	}
	return procfs.File{}, false
}

// semaphoreOf returns the mapping of the shared semaphore that a thread is waiting on, or false
// if it does not wait on one.
func semaphoreOf(p *procfs.Process, t procfs.Thread) (procfs.Mapping, bool) {
	if kindOf(t) != waitFutex || t.Call.Number < 0 {
		return procfs.Mapping{}, false
	}
	for _, m := range p.Maps.Shared {
		if m.Semaphore() && m.Contains(t.Call.Args[0]) {
			return m, true
		}
	}
	return procfs.Mapping{}, false
}

func shortName(path string) string {
	path = strings.TrimSuffix(path, " (deleted)")
	return path[strings.LastIndexByte(path, '/')+1:]
}
