package collective

import (
	"context"
	"errors"
	"sync"
)

// A Kind is a type of numbers that a library reduces.
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

// Size returns the bytes of a number.
func (k Kind) Size() int { return [kinds]int{1, 1, 2, 4, 8, 4, 8}[k] }

// An Op reduces the numbers of several ranks to one.
type Op uint8

// The operations.
const (
	Sum Op = iota
	Max
	Min
	Prod
	BAnd
	BOr
	BXor
)

// A Comm is a group of ranks. All ranks make its calls in the same order, except Send, Probe and
// Receive, which may be made beside them by other goroutines. What a slice points to stays in its
// place and is not used otherwise until the call has returned. A slice has at most MaxBytes, and a
// result has as much for each rank as the other side brings.
type Comm interface {
	Rank() int
	Size() int

	// Broadcast copies b of rank root to b of all ranks.
	Broadcast(root int, b []byte) error
	// AllReduce reduces b of all ranks in its place.
	AllReduce(k Kind, op Op, b []byte) error
	// Reduce reduces b of all ranks in its place at rank root; it stays as it is in the others.
	Reduce(root int, k Kind, op Op, b []byte) error
	// ReduceScatter reduces src and gives each rank its part.
	ReduceScatter(k Kind, op Op, dst, src []byte) error
	// AllGather fills dst with the src of each rank.
	AllGather(dst, src []byte) error
	// Gather does so at rank root; dst is nil in the others.
	Gather(root int, dst, src []byte) error
	// Scatter gives each rank a part of the src of rank root; it is nil in the others.
	Scatter(root int, dst, src []byte) error
	// AllToAll exchanges parts of equal length.
	AllToAll(dst, src []byte) error

	// Send begins to send b to a rank. It does not wait.
	Send(dst, tag int, b []byte) (Sending, error)
	// Probe says whether a message with the tag has come, from which rank, and its length.
	Probe(tag int) (from, size int, ok bool, err error)
	// Receive receives a message that Probe has found, or waits for one.
	Receive(from, tag int, b []byte) error

	// Split makes a Comm of those ranks that say member, in their order; nil for the others.
	Split(member bool) (Comm, error)
	// Free gives back a Comm that Split has made.
	Free() error
}

// A Sending is a message that is under way.
type Sending interface {
	// Done reports whether b can be used again, and moves the message on. It is not called again
	// after it said true.
	Done() (bool, error)
}

// A World is the Comm of all ranks of a job.
type World interface {
	Comm
	// Library says which library this is, in a word or two and its version.
	Library() string
	// Close leaves the library in order. It waits until all ranks do.
	Close() error
}

// MaxBytes is the longest slice of a call: counts of numbers are ints of 32 bits in most libraries.
const MaxBytes = 1 << 30

// A Launch is what the starter of a process has said about it.
type Launch struct {
	By         string // what has started it, for people
	Rank, Size int    // Size is 0 if it is not known
}

// ErrMissing is wrapped if the library of an engine is not on this machine, or does not fit what
// has started the process.
var ErrMissing = errors.New("the library is missing")

// An Open joins the job that a launcher has started.
type Open func(ctx context.Context, l Launch) (World, error)

// MPI is the name of the engine by MPI.
const MPI = "mpi"

var (
	mu      sync.Mutex
	engines = map[string]Open{}
)

// Register makes an engine known, when a program is initialised.
func Register(name string, open Open) {
	mu.Lock()
	defer mu.Unlock()
	engines[name] = open
}

// Of returns the engine of a name, nil if the program does not link it.
func Of(name string) Open {
	mu.Lock()
	defer mu.Unlock()
	return engines[name]
}
