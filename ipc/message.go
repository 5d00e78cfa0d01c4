package ipc

import (
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// keepBytes is the most memory that an encoder in the pool keeps between two messages.
const keepBytes = 8 << 20

// An outgoing is where a value becomes a message.
type outgoing struct {
	enc  codec.Encoder
	buf  []byte
	ends []int // of the values of a batch
	own  bool  // of an end, not of the pool
	busy bool  // an operation has it; until the end, if a value's own code panicked in it
}

var outgoings = sync.Pool{New: func() any { return &outgoing{buf: make([]byte, 0, arena.SlotSize)} }}

func newOutgoing() *outgoing { return outgoings.Get().(*outgoing) }

// done says what became of the message.
func (o *outgoing) done(sent bool) {
	b := o.enc.Message().Body
	o.enc.Done(sent)
	if cap(b) <= keepBytes {
		o.buf = b
	}
}

func (o *outgoing) free() { outgoings.Put(o) }

// keepOwn is the most memory that an end keeps between two messages.
const keepOwn = 64 << 10

// outgoing returns where an operation that has entered the end makes its message. The end keeps one
// for operations that are alone in it: to take one from a pool and to give it back takes longer
// than to write a number.
func (e *end) outgoing(alone bool) *outgoing {
	if !alone {
		return newOutgoing()
	}
	if e.out == nil || e.out.busy {
		e.out = newOutgoing()
		e.out.own = true
	}
	e.out.busy = true
	return e.out
}

func (e *end) freeOutgoing(o *outgoing) {
	o.busy = false
	if o.own && cap(o.buf) > keepOwn {
		e.out, o.own = nil, false
	}
	if !o.own {
		o.free()
	}
}

// incoming is outgoing of an operation that gets messages.
func (e *end) incoming(alone bool) *incoming {
	if !alone {
		return newIncoming(e.d)
	}
	if e.in == nil || e.in.busy {
		e.in = newIncoming(e.d)
		e.in.own = true
	}
	e.in.busy = true
	return e.in
}

func (e *end) freeIncoming(in *incoming) {
	in.busy = false
	if !in.own {
		in.free()
	}
}

// An incoming is where a message becomes a value. It is how the value's objects take their blocks:
// the first gets the message's reference, each other one gets its own.
type incoming struct {
	arena.Message
	d     *arena.Domain
	dec   codec.Decoder
	taken []bool
	batch arena.Batch
	own   bool // of an end, not of the pool
	busy  bool // an operation has it
}

var incomings = sync.Pool{New: func() any { return new(incoming) }}

func newIncoming(d *arena.Domain) *incoming {
	in := incomings.Get().(*incoming)
	in.d = d
	return in
}

func (in *incoming) free() {
	in.d = nil
	incomings.Put(in)
}

// Take implements codec.Blocks.
func (in *incoming) Take(i int) (arena.Handle, error) {
	h := in.Blocks[i]
	if in.taken[i] {
		if err := in.d.Retain(h); err != nil {
			return 0, err
		}
	}
	in.taken[i] = true
	return h, nil
}

// readN decodes the messages of the batch into vs and returns how many it could. The error is of
// one that it could not.
func readN[T any](in *incoming, plan *codec.Plan[T], vs []T) (n int, err error) {
	for i := range in.batch.Ends {
		in.dec.Reset(codec.Message{Body: in.batch.At(i)}, nil)
		v, fault := plan.Decode(&in.dec)
		if fault == nil {
			fault = in.dec.Finish()
		}
		in.dec.Done(fault == nil)
		if fault != nil {
			err = fault
			continue
		}
		vs[n] = v
		n++
	}
	return n, err
}

// read decodes the message and lets go of it. What nobody took is released, and if the value cannot
// be read, what was taken as well.
func read[T any](in *incoming, plan *codec.Plan[T]) (v T, err error) {
	in.begin()
	v, err = plan.Decode(&in.dec)
	if err = in.end(err); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// begin has the decoder read the message.
func (in *incoming) begin() {
	in.taken = in.taken[:0]
	if n := len(in.Blocks); n > 0 {
		in.taken = append(in.taken, make([]bool, n)...)
	}
	in.dec.Reset(codec.Message{Body: in.Body, Blocks: in.Blocks}, in)
}

// end lets go of the message, of which something was decoded with an error or without. The error is
// that, or that more follows.
func (in *incoming) end(err error) error {
	if err == nil {
		err = in.dec.Finish()
	}
	in.dec.Done(err == nil)
	for i, h := range in.Blocks {
		if !in.taken[i] {
			in.d.Release(h)
		}
	}
	in.Done()
	return err
}
