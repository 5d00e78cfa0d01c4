package ipc

import (
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// keepBytes limits the buffer that a pooled encoder keeps between messages, in bytes.
const keepBytes = 8 << 20

// An outgoing is the state of encoding one message, which is reused for later messages. One
// operation may use it at a time.
type outgoing struct {
	enc  codec.Encoder
	buf  []byte
	ends []int // end offsets of the values of a batch
	own  bool  // belongs to an end, not to the pool
	busy bool  // in use by an operation; stays set if a value's marshal method panics
}

var outgoings = sync.Pool{New: func() any { return &outgoing{buf: make([]byte, 0, arena.SlotSize)} }}

func newOutgoing() *outgoing { return outgoings.Get().(*outgoing) }

// releaseMessage releases the resources of the message that o.enc has encoded, and keeps its
// buffer for the next message. It must be called once per message. sent reports whether the
// message was sent.
func (o *outgoing) releaseMessage(sent bool) {
	b := o.enc.Message().Body
	o.enc.Done(sent)
	if cap(b) <= keepBytes {
		o.buf = b
	}
}

func (o *outgoing) recycle() { outgoings.Put(o) }

// keepOwn limits the buffer that an end keeps between messages, in bytes.
const keepOwn = 64 << 10

// getOutgoing returns the encoding state for an operation on the end. alone is the result of
// beginOpAlone. The caller must return the state by freeOutgoing before endOp. The end keeps one
// state for operations that are alone, because getting one from a sync.Pool and putting it back
// takes longer than encoding a number.
func (e *end) getOutgoing(alone bool) *outgoing {
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
		o.recycle()
	}
}

// getIncoming returns the decoding state for an operation on the end, as [end.getOutgoing] does
// for encoding. The caller must return it by freeIncoming before endOp.
func (e *end) getIncoming(alone bool) *incoming {
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
		in.recycle()
	}
}

// An incoming is a received message and the state of decoding it, which is reused for later
// messages. One operation may use it at a time. As a [codec.Blocks], it gives the message's own
// reference to the first object that takes a block, and retains the block for each further
// object.
type incoming struct {
	arena.Message
	d     *arena.Domain
	dec   codec.Decoder
	taken []bool
	batch arena.Batch
	own   bool // belongs to an end, not to the pool
	busy  bool // in use by an operation
}

var incomings = sync.Pool{New: func() any { return new(incoming) }}

func newIncoming(d *arena.Domain) *incoming {
	in := incomings.Get().(*incoming)
	in.d = d
	return in
}

func (in *incoming) recycle() {
	in.d = nil
	incomings.Put(in)
}

// Take implements [codec.Blocks].
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

// decodeBatch decodes the messages of the batch into vs, which must have room for all of them,
// and returns the number n of decoded values: they are in vs[:n]. It skips values that cannot be
// decoded; err is the error of the last of them.
func decodeBatch[T any](in *incoming, plan *codec.Plan[T], vs []T) (n int, err error) {
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

// decodeMessage decodes the message in in and releases it, also after an error. The caller must
// close the shared memory of v. Blocks that the value did not take are released. If decoding
// fails, the blocks that it took are released as well.
func decodeMessage[T any](in *incoming, plan *codec.Plan[T]) (v T, err error) {
	in.beginDecode()
	v, err = plan.Decode(&in.dec)
	if err = in.endDecode(err); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// beginDecode prepares in.dec for the message in in. The caller must call endDecode after
// decoding.
func (in *incoming) beginDecode() {
	in.taken = in.taken[:0]
	if n := len(in.Blocks); n > 0 {
		in.taken = append(in.taken, make([]bool, n)...)
	}
	in.dec.Reset(codec.Message{Body: in.Body, Blocks: in.Blocks}, in)
}

// endDecode releases the message after decoding, with the blocks that no decoded object has
// taken. err is the error of decoding or nil, and endDecode returns it. If it is nil, endDecode
// returns an error if the message has trailing data.
func (in *incoming) endDecode(err error) error {
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
