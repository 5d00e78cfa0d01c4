package sys

import (
	"context"
	"time"
)

// A Deadline is a time on the clock of [Monotonic]. It means the same in all processes of the
// machine, regardless of changes to the time of day. 0 means no deadline.
type Deadline int64

// DeadlineOf returns the deadline of ctx on the shared clock, or 0 if ctx has none. The result
// is never earlier than the deadline of ctx, so that this has passed when another process
// reports an expired deadline. The remaining time is therefore read before the clock.
func DeadlineOf(ctx context.Context) Deadline {
	at, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(at)
	return max(1, Deadline(left+Monotonic()))
}

// Earlier returns the earlier of two deadlines. 0, which means none, is later than any other.
func (d Deadline) Earlier(other Deadline) Deadline {
	if d == 0 || other != 0 && other < d {
		return other
	}
	return d
}

// Context returns a child of parent that ends at the deadline, with [context.DeadlineExceeded].
// If d is 0, it adds no deadline. The caller must call cancel.
func (d Deadline) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	if d == 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeout(parent, time.Duration(d)-Monotonic())
}
