package shoal

import (
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// This file encodes arguments and control messages. No other file of the package uses
// internal/codec, except to register errors and to set up a worker.

// A parcel is an encoded argument: bytes, and the blocks to which they refer by index.
type parcel struct {
	Body   []byte
	Blocks []uint64
}

// job is the first message from a parent to a new process: the function to run, its argument,
// and the properties that the process sets before.
type job struct {
	Func string
	Rank int
	Arg  parcel

	Threads int
	Nice    int   // 0: unchanged
	CPUs    []int // nil: all
	Parent  Identity
	Seed    uint64 // seed of the random numbers

	Deadline sys.Deadline // deadline of the group's context
}

// ready is the message by which a worker reports that it has decoded its argument and holds the
// blocks. A process that waits for its job also sends it first when it has joined the domain.
type ready struct{ Seat int } // seat in the domain

// outcome is the last message of a process. It is the result of the function, or says why the
// function did not return.
type outcome struct {
	Kind  string // one of the kinds below
	Text  string // text of a panic
	Err   error  // returned error, or the value of a panic if it is an error
	Stack string
}

const (
	kindReturned      = "returned"
	kindPanicked      = "panicked"
	kindArgument      = "argument"
	kindUnprepared    = "unprepared"
	kindNotRegistered = "not registered"
)

// cancellation tells a process to stop, with the cause.
type cancellation struct{ Cause error }

var (
	jobPlan          = mustPlan[job]()
	readyPlan        = mustPlan[ready]()
	outcomePlan      = mustPlan[outcome]()
	cancellationPlan = mustPlan[cancellation]()
	filesPlan        = mustPlan[[]*os.File]()
)

func mustPlan[T any]() *codec.Plan[T] {
	p, err := codec.PlanOf[T]()
	if err != nil {
		panic("shoal: " + err.Error())
	}
	return p
}

// encodeControl encodes the body of a control message. v must not contain shared memory. It
// returns an error if the body exceeds [maxFrame] bytes.
func encodeControl[T any](p *codec.Plan[T], v T) ([]byte, error) {
	e := codec.Encoder{Limits: codec.Limits{Bytes: maxFrame}}
	e.Reset(nil)
	err := p.Encode(&e, v)
	e.Done(err == nil)
	return e.Message().Body, err
}

// decodeControl decodes the body of a control message of type T.
func decodeControl[T any](p *codec.Plan[T], body []byte) (v T, err error) {
	d := codec.Decoder{Limits: codec.Limits{Bytes: maxFrame}}
	d.Reset(codec.Message{Body: body}, nil)
	v, err = p.Decode(&d)
	d.Done(err == nil)
	return v, err
}

// argument encodes and decodes values of type In.
type argument[In any] struct{}

// checkType returns an error if values of type In cannot be encoded; it contains the path to the
// unsupported part.
func (argument[In]) checkType() error { return codec.Check[In]() }

// An encodedArg is an encoded argument with the files of [Options], which one or more processes
// decode. Its methods may be called concurrently. It holds references to the argument's blocks
// until each receiver has its own or has ended.
type encodedArg struct {
	parcel
	mu        sync.Mutex
	receivers int
	delivery  *arena.Delivery // nil if there are no blocks
	kept      []any           // values that must stay reachable until the receivers have ended
}

// encode encodes in and files for n receivers. The caller must call markReceived or markLost
// once for each receiver. The error wraps [ErrArgument].
func (argument[In]) encode(in In, files []*os.File, n int) (*encodedArg, error) {
	var e codec.Encoder
	e.Reset(nil)
	plan, err := codec.PlanOf[In]()
	if err == nil {
		err = plan.Encode(&e, in)
	}
	if err == nil {
		err = filesPlan.Encode(&e, files)
	}
	if err != nil {
		e.Done(false)
		return nil, newDescribed(fmt.Sprintf("encode argument: %v", err), ErrArgument, err)
	}
	m := e.Message()
	s := &encodedArg{parcel: parcel{Body: m.Body}, receivers: n, kept: e.Kept()}
	err = s.retainBlocks(m.Blocks)
	e.Done(err == nil)
	if err != nil {
		return nil,
			newDescribed(fmt.Sprintf("reference the shared memory blocks of the argument: %v", err), ErrArgument, err)
	}
	return s, nil
}

// retainBlocks acquires a reference to each block, which s holds until all receivers are marked,
// and stores the handles in s.Blocks. If it fails, it acquires none.
func (s *encodedArg) retainBlocks(blocks []arena.Handle) error {
	if len(blocks) == 0 {
		return nil
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	if s.delivery, err = d.Deliver(blocks); err != nil {
		return err
	}
	for _, h := range blocks {
		s.Blocks = append(s.Blocks, uint64(h))
	}
	return nil
}

// markReceived must be called, once per receiver, when the receiver has its own references to
// the blocks. The last call releases the references of s.
func (s *encodedArg) markReceived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receivers--; s.receivers == 0 && s.delivery != nil {
		s.delivery.Close() // the caller is not responsible for an unknown block
	}
}

// markLost must be called instead of markReceived when the receiver with process id pid has
// ended without references to the blocks. It notifies the processes that hold the blocks. pid is
// 0 if the receiver could not be started.
func (s *encodedArg) markLost(pid int) {
	if s.delivery != nil {
		s.mu.Lock()
		s.delivery.Lost(pid)
		s.mu.Unlock()
	}
	s.markReceived()
}

// decode decodes an argument and its files in the receiver. The sender must hold the blocks
// meanwhile. The caller must close the files and e after the function has returned. After an
// error the results must not be used.
func (argument[In]) decode(m parcel) (in In, files []*os.File, e ends, err error) {
	blocks, err := importBlocks(m.Blocks)
	if err != nil {
		return in, nil, nil, err
	}
	defer blocks.release()
	d := codec.Decoder{Ends: (*[]codec.Watcher)(&e)}
	d.Reset(codec.Message{Body: m.Body, Blocks: blocks.handles}, blocks)
	plan, err := codec.PlanOf[In]()
	if err == nil {
		in, err = plan.Decode(&d)
	}
	if err == nil {
		files, err = filesPlan.Decode(&d)
	}
	d.Done(err == nil)
	return in, files, e, err
}

// ends contains the parts of an argument that other processes wait for: ends of queues, and the
// membership in a rank's group.
type ends []codec.Watcher

// close leaves the rank's group and announces the end of this process's use of the queues in the
// argument. It must be called after the function has returned, because other processes do not
// notice the end of a goroutine, nor that an ended process has left a group.
func (e ends) close() {
	for _, w := range e {
		w.Done(false)
	}
}

// imported contains the blocks of a parcel, with one reference of this process to each. The
// caller must call release, after the argument has been decoded. It implements [codec.Blocks].
type imported struct {
	domain  *arena.Domain
	handles []arena.Handle
}

func importBlocks(blocks []uint64) (*imported, error) {
	b := new(imported)
	if len(blocks) == 0 {
		return b, nil
	}
	var err error
	if b.domain, err = arena.Default(); err != nil {
		return nil, err
	}
	for i, h := range blocks {
		if err := b.domain.Import(arena.Handle(h)); err != nil {
			b.release()
			return nil, fmt.Errorf("import block %d of %d: %w", i+1, len(blocks), err)
		}
		b.handles = append(b.handles, arena.Handle(h))
	}
	return b, nil
}

// Take returns block i of the parcel with an additional reference, which the caller must
// release.
func (b *imported) Take(i int) (arena.Handle, error) {
	h := b.handles[i]
	return h, b.domain.Retain(h)
}

func (b *imported) release() {
	for _, h := range b.handles {
		b.domain.Release(h)
	}
}
