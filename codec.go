package shoal

import (
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// This file is all that the package knows of wire: how an argument and the control messages become
// bytes.

// A parcel is an argument on its way: bytes, and the blocks to which they refer by index.
type parcel struct {
	Body   []byte
	Blocks []uint64
}

// job is the first message to a new process.
type job struct {
	Func string
	Rank int
	Arg  parcel

	Threads int
	Nice    int   // 0: unchanged
	CPUs    []int // nil: all
	Parent  Identity
	Seed    uint64 // the seed of the random numbers

	Deadline sys.Deadline // of the group's context
}

// ready is the first message of a process.
type ready struct{ Seat int } // the seat in the domain; a process that waits for its job sends two such messages

// outcome is the last message of a process.
type outcome struct {
	Kind  string // one of the kinds below
	Text  string // the text of a panic
	Err   error  // the returned error, or the value of the panic if it was an error
	Stack string
}

const (
	kindReturned      = "returned"
	kindPanicked      = "panicked"
	kindArgument      = "argument"
	kindUnprepared    = "unprepared"
	kindNotRegistered = "not registered"
)

// cancellation tells a process to stop, and why.
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

// encode makes the body of a control message. It holds no blocks.
func encode[T any](p *codec.Plan[T], v T) ([]byte, error) {
	e := codec.Encoder{Limits: codec.Limits{Bytes: maxFrame}}
	e.Reset(nil)
	err := p.Encode(&e, v)
	e.Done(err == nil)
	return e.Message().Body, err
}

// decode reads a control message.
func decode[T any](p *codec.Plan[T], body []byte) (v T, err error) {
	d := codec.Decoder{Limits: codec.Limits{Bytes: maxFrame}}
	d.Reset(codec.Message{Body: body}, nil)
	v, err = p.Decode(&d)
	d.Done(err == nil)
	return v, err
}

// argument moves values of one type.
type argument[In any] struct{}

// check has the plan built, and returns an error if that is not possible.
func (argument[In]) check() error { return codec.Check[In]() }

// An encodedArg is an encoded argument. It holds the argument's blocks until each of its receivers
// holds them as well, or is dead.
type encodedArg struct {
	parcel
	mu        sync.Mutex
	receivers int
	delivery  *arena.Delivery // nil if there are no blocks
	kept      []any           // values that must not be collected before the receivers have ended
}

// encode packs in, and its files, for n receivers. Each receiver calls done once.
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
		return nil, describe(fmt.Sprintf("encode argument: %v", err), ErrArgument, err)
	}
	m := e.Message()
	s := &encodedArg{parcel: parcel{Body: m.Body}, receivers: n, kept: e.Kept()}
	err = s.hold(m.Blocks)
	e.Done(err == nil)
	if err != nil {
		return nil, describe(fmt.Sprintf("hold the blocks of the argument: %v", err), ErrArgument, err)
	}
	return s, nil
}

// hold takes a reference of each block, all or none.
func (s *encodedArg) hold(blocks []arena.Handle) error {
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

// done is called when one receiver holds the blocks itself.
func (s *encodedArg) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receivers--; s.receivers == 0 && s.delivery != nil {
		s.delivery.Close() // an unknown block is not an error of this caller
	}
}

// lost is called when one receiver has ended and never held the blocks. The processes that hold
// them are told of this. pid is 0 if the receiver could not be started.
func (s *encodedArg) lost(pid int) {
	if s.delivery != nil {
		s.mu.Lock()
		s.delivery.Lost(pid)
		s.mu.Unlock()
	}
	s.done()
}

// decode unpacks an argument and its files in the process that receives it, while the sender still
// holds its blocks. The receiver closes e.
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

// ends are the parts of an argument for which others wait: the ends of queues, and a rank's group.
type ends []codec.Watcher

// close is for a function that has returned. A process leaves no rank by its end alone, and a
// goroutine leaves nothing.
func (e ends) close() {
	for _, w := range e {
		w.Done(false)
	}
}

// imported has the blocks of a parcel, which this process holds.
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

// Take returns a block with a reference of its own, as codec.Blocks demands.
func (b *imported) Take(i int) (arena.Handle, error) {
	h := b.handles[i]
	return h, b.domain.Retain(h)
}

func (b *imported) release() {
	for _, h := range b.handles {
		b.domain.Release(h)
	}
}
