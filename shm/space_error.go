package shm

import (
	"fmt"
	"strconv"
)

// A SpaceError is an ErrNoSpace with its numbers, in bytes.
type SpaceError struct {
	Want    int64    // what the caller asked for
	Used    int64    // committed and charged to the domain
	Limit   int64    // the domain's budget
	Free    int64    // what this process could still commit, by the budget and by its machine and cgroup
	Unread  int64    // of these, in blocks that only messages hold which nobody has received
	Queues  []Unread // where those messages are, most memory first, at most three
	Holders []Holder // who holds most, largest first, at most three
}

// Error returns one line.
func (e *SpaceError) Error() string {
	s := fmt.Sprintf("shm: no space for %d bytes: %d of %d in use, %d free", e.Want, e.Used, e.Limit, e.Free)
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

// Unread is what waits in one queue: the messages that nobody has received, and the memory that
// nobody but they hold.
type Unread struct {
	Queue    string // its block, as a Handle is printed
	Name     string // under which it is bound, if it is
	Label    string // RingOptions.Label: of which values it is
	Messages int
	Bytes    int64
}

// String is `4096 bytes by 3 unread in queue "jobs" of *tensor.Tensor`.
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
