package arena

import "context"

// A store is where a domain's two segments live and how its participants see and wake each other:
// memfds, pidfds and datagram sockets between processes, or the Go heap and channels inside one,
// where the race detector sees them.
type store interface {
	control() []byte
	data() []byte
	commitControl(off, n uint64) error // back [off, off+n) by pages
	commit(off, n uint64) error        // the same in the data segment; on error some of them may be backed
	punch(off, n uint64) error         // give the pages of [off, off+n) back
	headroom() int64                   // bytes that this process may commit by its machine and cgroup

	enter(seat int) (bool, error) // take the seat's proof of life; false if somebody has it
	leave(seat int) error
	alive(seat int) (bool, error)                   // whether somebody has the seat's proof of life
	await(ctx context.Context, pid, seat int) error // until the participant has ended

	listen() (b bell, name uint64, err error) // a doorbell of a name that nobody can guess
	wakeBell(seat int, name uint64)           // the doorbell of the participant there; 0: it has none yet
	close() error
}

// A bell wakes a process. Any number of wakeups before Wait are one.
type bell interface {
	Wait() error
	Close() error
}
