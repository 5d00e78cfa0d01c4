package manager

import (
	"reflect"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An item is an encoded value with the blocks of shared memory that it refers to by index. The
// server stores items and compares their bytes without knowing their types.
type item struct {
	body   []byte
	blocks []arena.Handle
}

// A keeper counts this process's references to blocks of shared memory: a domain, or a client of
// a server on another machine.
type keeper interface {
	Retain(arena.Handle) error
	Release(arena.Handle) error
}

// MarshalWire encodes the item. The caller must hold its blocks until the message is sent.
func (it *item) MarshalWire(e *codec.Encoder) error {
	return e.Parcel(codec.Message{Body: it.body, Blocks: it.blocks})
}

// UnmarshalWire decodes an item, which owns references to its blocks.
func (it *item) UnmarshalWire(d *codec.Decoder) error {
	m, err := d.Parcel(func(h arena.Handle) { defaultKeeper().Release(h) })
	it.body, it.blocks = m.Body, m.Blocks
	return err
}

// defaultKeeper returns the domain of this process, which must exist if there are items with
// blocks. If there is none, the keeper's Retain fails and its Release does nothing.
func defaultKeeper() keeper {
	d, err := arena.Default()
	if err != nil {
		return unkept{}
	}
	return d
}

type unkept struct{}

func (unkept) Retain(arena.Handle) error  { return arena.ErrClosed }
func (unkept) Release(arena.Handle) error { return nil }

// clone returns a copy of the item, with its own bytes and references. The caller must release
// it.
func (it item) clone(k keeper) (item, error) {
	return item{slices.Clone(it.body), slices.Clone(it.blocks)}.retain(k)
}

// retain returns the same item after adding a reference to each of its blocks, which the caller
// must release. If it returns an error, it has added none.
func (it item) retain(k keeper) (item, error) {
	for i, h := range it.blocks {
		if err := k.Retain(h); err != nil {
			item{blocks: it.blocks[:i]}.release(k)
			return item{}, err
		}
	}
	return it, nil
}

func (it item) release(k keeper) {
	for _, h := range it.blocks {
		k.Release(h)
	}
}

func releaseAll(k keeper, items []item) {
	for _, it := range items {
		it.release(k)
	}
}

// An argument is a value encoded for one call. The encoder owns the bytes, so the item is valid
// until releaseArg.
type argument struct {
	item
	encoder *codec.Encoder
	err     error                    // why the value cannot be sent
	again   func() (argument, error) // encodes the value for another machine; nil if that is the same
}

var encoders = sync.Pool{New: func() any { return new(codec.Encoder) }}

// keepBytes limits the buffer that a pooled encoder keeps, in bytes.
const keepBytes = 64 << 10

// releaseArg releases the argument. It must be called once, and must not be called if a.err is
// set. sent reports whether the server received the value.
func (a *argument) releaseArg(sent bool) {
	a.encoder.Done(sent)
	if cap(a.body) <= keepBytes {
		encoders.Put(a.encoder)
	}
}

// takeItem releases the argument and returns a copy of its item. The value must not have blocks.
func (a *argument) takeItem() item {
	it := item{body: slices.Clone(a.body)}
	a.releaseArg(true)
	return it
}

// encodeArg encodes v as an argument. If v cannot be encoded, the error is in the argument's
// err. Otherwise the caller must call releaseArg, or pass the argument to a function that does.
func encodeArg[T any](v T) argument {
	a, err := packArg(v)
	a.err = err
	if err == nil && a.encoder.Local() {
		w := v // a copy, so that v does not escape unless this is reached
		a.again = func() (argument, error) {
			return packWith(true, func(e *codec.Encoder) error { return codec.Encode(e, w) })
		}
	}
	return a
}

// encodeByValue returns the argument encoded by value, without references to objects of this
// machine, for another machine. It replaces a, which it has released if the encoding differs. An
// error is in the result's err.
func (a argument) encodeByValue() argument {
	if a.err != nil || a.again == nil {
		return a
	}
	a.releaseArg(false)
	b, err := a.again()
	b.err = err
	return b
}

// packArg encodes v. The caller must call releaseArg, and must keep v alive until then.
func packArg[T any](v T) (argument, error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return argument{}, err
	}
	return packWith(false, func(e *codec.Encoder) error { return plan.Encode(e, v) })
}

func packValue(plan *codec.TypePlan, v reflect.Value) (argument, error) {
	encode := func(e *codec.Encoder) error { return plan.Encode(e, v) }
	a, err := packWith(false, encode)
	if err == nil && a.encoder.Local() {
		a.again = func() (argument, error) { return packWith(true, encode) }
	}
	return a, err
}

func packWith(byValue bool, encode func(e *codec.Encoder) error) (argument, error) {
	e := encoders.Get().(*codec.Encoder)
	e.ByValue = byValue
	e.Reset(e.Message().Body)
	a := argument{encoder: e}
	err := encode(e)
	m := e.Message()
	a.item = item{m.Body, m.Blocks}
	if err != nil {
		a.releaseArg(false)
		return argument{}, err
	}
	return a, nil
}

// unpackItem decodes an item as a T. The caller must close the shared memory of v. It takes
// ownership of the item's references, even if it returns an error.
func unpackItem[T any](k keeper, it item) (v T, err error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		it.release(k)
		return v, err
	}
	err = unpackWith(k, it, func(d *codec.Decoder) (err error) {
		v, err = plan.Decode(d)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

func unpackValue(k keeper, it item, plan *codec.TypePlan) (v reflect.Value, err error) {
	err = unpackWith(k, it, func(d *codec.Decoder) (err error) {
		v, err = plan.Decode(d)
		return err
	})
	return v, err
}

var decoders = sync.Pool{New: func() any { return new(codec.Decoder) }}

func unpackWith(k keeper, it item, decode func(d *codec.Decoder) error) error {
	d := decoders.Get().(*codec.Decoder)
	defer decoders.Put(d)
	if len(it.blocks) == 0 {
		return decodeAll(d, it, nil, decode)
	}
	t := taker{k, it.blocks, make([]bool, len(it.blocks))}
	err := decodeAll(d, it, t, decode)
	for i, h := range it.blocks {
		if !t.taken[i] {
			k.Release(h)
		}
	}
	return err
}

func decodeAll(d *codec.Decoder, it item, blocks codec.Blocks, decode func(d *codec.Decoder) error) error {
	d.Reset(codec.Message{Body: it.body, Blocks: it.blocks}, blocks)
	err := decode(d)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	return err
}

// A taker is the [codec.Blocks] of an item that is being decoded. It gives the item's own
// reference of a block to the first object that takes it, and retains the block for each further
// object.
type taker struct {
	keeper
	blocks []arena.Handle
	taken  []bool
}

// Take implements [codec.Blocks].
func (t taker) Take(i int) (arena.Handle, error) {
	h := t.blocks[i]
	if t.taken[i] {
		if err := t.Retain(h); err != nil {
			return 0, err
		}
	}
	t.taken[i] = true
	return h, nil
}
