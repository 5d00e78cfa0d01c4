package shm

import (
	"fmt"
	"strconv"
)

// A SpaceError describes a failed allocation: the requested and the available memory, and the
// largest holders. All numbers are bytes. It wraps [ErrNoSpace].
type SpaceError struct {
	Want    int64    // requested size
	Used    int64    // bytes committed and charged to the domain
	Limit   int64    // budget of the domain
	Free    int64    // bytes this process could still commit, by budget, machine and cgroup
	Machine string   // remaining memory of the machine or cgroup, if this is the limit
	Spent   string   // exhausted addresses or blocks, if this is the limit, with a remedy
	Unread  int64    // bytes of Used in blocks that only unread messages hold
	Queues  []Unread // queues of these messages, most memory first, at most three
	Holders []Holder // processes that hold most memory, largest first, at most three
}

// Error returns one line.
func (e *SpaceError) Error() string {
	s := fmt.Sprintf("shm: no space for %d bytes: %d of %d in use, %d free", e.Want, e.Used, e.Limit, e.Free)
	if e.Spent != "" {
		return s + ", but " + e.Spent
	}
	if e.Machine != "" {
		return s + ": " + e.Machine + "; the rest is reserved: end other processes that use memory"
	}
	if e.Unread > 0 {
		s += fmt.Sprintf("; %d in unread messages", e.Unread)
	}
	for _, q := range e.Queues {
		s += fmt.Sprintf("; %v", q)
	}
	for _, h := range e.Holders {
		s += fmt.Sprintf("; pid %d holds %d", h.PID, h.Bytes)
	}
	return s + "; close unused memory, or raise Budget with shoal.SetMemory"
}

// Unwrap returns ErrNoSpace.
func (e *SpaceError) Unwrap() error { return ErrNoSpace }

// Unread describes the unread messages in one queue of the domain, and the memory that only they
// hold.
type Unread struct {
	Queue    string // block of the queue, as printed by shoal inspect
	Name     string // bound name of the queue, or empty
	Label    string // Go type of the queue's values, or empty
	Messages int    // number of unread messages
	Bytes    int64  // bytes of blocks that only these messages hold
}

// String returns one line, such as `4096 bytes by 3 unread in queue "jobs" of *tensor.Tensor`.
func (u Unread) String() string {
	queue := u.Queue
	if u.Name != "" {
		queue = strconv.Quote(u.Name)
	}
	s := fmt.Sprintf("%d bytes by %d unread in queue %s", u.Bytes, u.Messages, queue)
	if u.Label != "" {
		s += " of " + u.Label
	}
	return s
}
