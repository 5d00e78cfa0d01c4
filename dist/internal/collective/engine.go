package collective

import (
	"context"
	"errors"
	"sync"
)

// A Kind is a type of numbers that a library can reduce.
type Kind uint8

// The kinds.
const (
	Uint8 Kind = iota
	Int8
	Int16
	Int32
	Int64
	Float32
	Float64
	kinds
)

// Size returns the size of a number in bytes.
func (k Kind) Size() int { return [kinds]int{1, 1, 2, 4, 8, 4, 8}[k] }

// An Op is a reduction of numbers over ranks.
type Op uint8

// The operations. BAnd, BOr and BXor are bitwise.
const (
	Sum Op = iota
	Max
	Min
	Prod
	BAnd
	BOr
	BXor
)

// A Comm is a communicator: a group of ranks. All ranks must make its calls in the same order,
// except Send, Probe and Receive, which may be called concurrently by other goroutines. The
// memory of a slice must not move, and must not be used otherwise, until the call has returned;
// after Send, until the [Sending] is done. A slice must not be longer than [MaxBytes].
type Comm interface {
	Rank() int
	Size() int

	// Broadcast copies b of rank root to b of all ranks. All b must have the same length.
	Broadcast(root int, b []byte) error
	// AllReduce reduces the b of all ranks in place.
	AllReduce(k Kind, op Op, b []byte) error
	// Reduce reduces the b of all ranks in place at rank root. The b of other ranks stays
	// unchanged.
	Reduce(root int, k Kind, op Op, b []byte) error
	// ReduceScatter reduces the src of all ranks and writes part r of the result to dst of rank r.
	// len(src) must be Size() times len(dst).
	ReduceScatter(k Kind, op Op, dst, src []byte) error
	// AllGather concatenates the src of all ranks into dst. len(dst) must be Size() times len(src).
	AllGather(dst, src []byte) error
	// Gather does the same at rank root only. dst must be nil in other ranks.
	Gather(root int, dst, src []byte) error
	// Scatter copies part r of rank root's src to dst of rank r. src must be nil in other ranks.
	Scatter(root int, dst, src []byte) error
	// AllToAll sends part r of src to rank r and concatenates the received parts into dst. len(dst)
	// must equal len(src).
	AllToAll(dst, src []byte) error

	// Send starts to send b to rank dst without blocking. The caller must not change b until
	// [Sending.Done] returns true.
	Send(dst, tag int, b []byte) (Sending, error)
	// Probe reports whether a message with the tag has arrived, with its sender and its length in
	// bytes.
	Probe(tag int) (from, size int, ok bool, err error)
	// Receive receives a message into b. It blocks unless Probe has found the message.
	Receive(from, tag int, b []byte) error

	// Split creates a Comm of the ranks that pass member, in their order. It returns nil in the
	// others. All ranks must call it. The caller must free the Comm.
	Split(member bool) (Comm, error)
	// Free releases a Comm that Split has created.
	Free() error
}

// A Sending is a send in progress.
type Sending interface {
	// Done reports whether the send is complete. It must be polled, because the library makes
	// progress only in calls. It must not be called again after it has returned true.
	Done() (bool, error)
}

// A World is the Comm of all ranks of a job.
type World interface {
	Comm
	// Library returns the name and the version of the library for people.
	Library() string
	// Close finalizes the library. It blocks until all ranks have called it.
	Close() error
}

// MaxBytes is the largest length of a slice: most libraries count elements in 32-bit integers.
const MaxBytes = 1 << 30

// A Launch describes how the launcher started this process.
type Launch struct {
	By         string // the launcher, for people
	Rank, Size int    // Size is 0 if it is unknown
}

// ErrMissing is wrapped by the errors of [Open] if the engine's library is not installed or does
// not match the launcher.
var ErrMissing = errors.New("library missing or not usable")

// An Open joins the job that a launcher has started and returns the Comm of its ranks, which the
// caller must close. It blocks until all ranks have joined or ctx ends. The error wraps
// [ErrMissing], or the cause of ctx, or is one of the library.
type Open func(ctx context.Context, l Launch) (World, error)

// MPI is the name of the MPI engine.
const MPI = "mpi"

var (
	mu      sync.Mutex
	engines = map[string]Open{}
)

// Register adds an engine, and replaces an engine of the same name. It should be called in an
// init function.
func Register(name string, open Open) {
	mu.Lock()
	defer mu.Unlock()
	engines[name] = open
}

// Of returns the engine with the given name, or nil if the program does not link it.
func Of(name string) Open {
	mu.Lock()
	defer mu.Unlock()
	return engines[name]
}
