package shm

import (
	"fmt"
	"strconv"
)

// A SpaceError says how much memory was asked for, how much there is, and which processes and
// queues hold it. All numbers are bytes. It wraps ErrNoSpace.
type SpaceError struct {
	Want    int64    // what the caller asked for
	Used    int64    // committed and charged to the domain
	Limit   int64    // the domain's budget
	Free    int64    // what this process could still commit, by the budget and by its machine and cgroup
	Machine string   // what the machine or its control group has left, where the budget has room and they have not
	Spent   string   // what is used up where it is not the budget: addresses or blocks, and what to do
	Unread  int64    // the part of Used in blocks that only unread messages hold
	Queues  []Unread // the queues of these messages, most memory first, at most three
	Holders []Holder // the processes that hold most, largest first, at most three
}

// Error returns one line.
func (e *SpaceError) Error() string {
	s := fmt.Sprintf("shm: no space for %d bytes: %d of %d in use, %d free", e.Want, e.Used, e.Limit, e.Free)
	if e.Spent != "" {
		return s + ", but " + e.Spent
	}
	if e.Machine != "" {
		return s + ": " + e.Machine + "; the last of that is kept from sharing: end what takes it"
	}
	if e.Unread > 0 {
		s += fmt.Sprintf("; %d wait in messages that nobody has received", e.Unread)
	}
	for _, q := range e.Queues {
		s += fmt.Sprintf("; %v", q)
	}
	for _, h := range e.Holders {
		s += fmt.Sprintf("; pid %d holds %d", h.PID, h.Bytes)
	}
	return s + "; close what is not needed or raise Budget by shoal.SetMemory"
}

// Unwrap returns ErrNoSpace.
func (e *SpaceError) Unwrap() error { return ErrNoSpace }

// Unread counts the messages in one queue that nobody has received, and the memory that only these
// messages hold.
type Unread struct {
	Queue    string // the queue's block, as shoal inspect prints it
	Name     string // the name under which the queue is bound, or empty
	Label    string // the Go type of the queue's values, or empty
	Messages int    // unread messages
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
