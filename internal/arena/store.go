package arena

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena/park"
)

// A store provides a domain's two segments, and the means by which its participants detect each
// other's death and wake each other. Between processes these are memfds, pidfds and datagram
// sockets. Within one process they are the Go heap and channels, which the race detector
// understands.
//
// Each seat has a proof of life, a lock that its participant holds as long as it lives. Between
// processes it is an OFD lock of one byte, which the kernel releases when the process ends.
type store interface {
	park.Bells

	control() []byte
	data() []byte
	// commitControl backs the bytes [off, off+n) of the control segment by pages.
	commitControl(off, n uint64) error
	// commitData does the same for the data segment. After an error, some of the pages may be
	// backed.
	commitData(off, n uint64) error
	// punchData frees the pages of [off, off+n).
	punchData(off, n uint64) error
	// headroom returns the number of bytes that the machine and the cgroup let this process commit.
	headroom() int64

	// lockSeat takes a seat's proof of life. It returns false if another participant holds it.
	lockSeat(seat int) (bool, error)
	// unlockSeat releases it.
	unlockSeat(seat int) error
	// isAlive reports whether a participant holds the seat's proof of life.
	isAlive(seat int) (bool, error)
	// awaitDeath blocks until the participant has ended.
	awaitDeath(ctx context.Context, pid, seat int) error

	// openBell creates a doorbell. Its name must be unpredictable, because any process may send to
	// it.
	openBell() (b bell, name uint64, err error)
	// close releases the segments and the store's other resources.
	close() error
}

// A bell receives wakeups of this process. Wait blocks until there is one, and returns an error
// once the bell is closed. Several wakeups of one topic before a Wait count as one. Wait returns
// the topics, in a slice that is valid until the next Wait.
type bell interface {
	Wait() ([]park.Topic, error)
	Close() error
}
