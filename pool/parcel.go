package pool

import (
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A parcel is encoded values that hold their blocks, wherever it is: its holder releases it. It may
// be sent any number of times.
type parcel struct {
	body   []byte
	blocks []arena.Handle
	kept   []any // what must not be collected as long as it is in use
}

var encoders = sync.Pool{New: func() any { return new(codec.Encoder) }}

// smallBody is room for most that is not big; less than this would save nothing.
const smallBody = 64

// pack makes a parcel of what encode writes. A value that is given with the parcel is gone if there
// is a parcel. If gone is true, it is gone anyway, even if encode panics: nobody else has a use for
// it.
func pack(gone bool, encode func(e *codec.Encoder) error) (p parcel, err error) {
	e := encoders.Get().(*codec.Encoder)
	e.Reset(make([]byte, 0, smallBody))
	defer func() {
		e.Done(gone)
		encoders.Put(e)
	}()
	if err := encode(e); err != nil {
		return p, err
	}
	m := e.Message()
	p.body, p.kept = m.Body, e.Kept()
	if err := p.hold(m.Blocks); err != nil {
		return p, err
	}
	gone = true
	return p, nil
}

// packAll makes a parcel of values, which stay the caller's.
func packAll[T any](plan *codec.Plan[T], vs []T) (parcel, error) {
	return pack(false, func(e *codec.Encoder) error {
		for _, v := range vs {
			if err := plan.Encode(e, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// hold takes a reference of each block, all or none.
func (p *parcel) hold(blocks []arena.Handle) error {
	if len(blocks) == 0 {
		return nil
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	for _, h := range blocks {
		if err := d.Retain(h); err != nil {
			p.release()
			return err
		}
		p.blocks = append(p.blocks, h)
	}
	return nil
}

// release gives the references back. That the domain is gone by now is not this caller's affair.
func (p *parcel) release() {
	p.kept = nil
	if len(p.blocks) == 0 {
		return
	}
	d, err := arena.Default()
	for _, h := range p.blocks {
		if err == nil {
			d.Release(h)
		}
	}
	p.blocks = nil
}

var decoders = sync.Pool{New: func() any { return new(codec.Decoder) }}

// unpack calls decode with what reads the parcel's values, of which it must read all. What they
// hold is their own.
func (p parcel) unpack(decode func(d *codec.Decoder) error) error {
	d := decoders.Get().(*codec.Decoder)
	d.Reset(codec.Message{Body: p.body, Blocks: p.blocks}, p)
	err := decode(d)
	if err == nil {
		err = d.Finish()
	}
	decoders.Put(d)
	return err
}

// next decodes one value. It is its reader's at once, whatever comes after it.
func next[T any](plan *codec.Plan[T], d *codec.Decoder) (T, error) {
	v, err := plan.Decode(d)
	d.Done(err == nil)
	return v, err
}

// unpackAll fills vs with the parcel's values. The caller says later which of them are used.
func unpackAll[T any](plan *codec.Plan[T], p parcel, vs []T) (u users, err error) {
	err = p.unpack(func(d *codec.Decoder) (err error) {
		for i := range vs {
			vs[i], err = plan.Decode(d)
			if w := d.Watchers(); len(w) > 0 {
				if u == nil {
					u = make(users, len(vs))
				}
				u[i] = w
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		u.done(false)
		return nil, err
	}
	return u, nil
}

// users are to be told of each of some values whether it is used; nil where there is nothing to be
// told. A value that nobody uses gives back what it has of shared memory.
type users []codec.Watchers

func (u users) done(used bool) {
	for _, w := range u {
		w.Done(used)
	}
}

// first tells that the first value is used, and returns those of the others.
func (u users) first() users {
	if u == nil {
		return nil
	}
	u[0].Done(true)
	return u[1:]
}

// Take implements codec.Blocks.
func (p parcel) Take(i int) (arena.Handle, error) {
	d, err := arena.Default()
	if err != nil {
		return 0, err
	}
	return p.blocks[i], d.Retain(p.blocks[i])
}

// MarshalWire writes the bytes and the blocks. The message becomes another holder of them.
func (p *parcel) MarshalWire(e *codec.Encoder) error {
	return e.Parcel(codec.Message{Body: p.body, Blocks: p.blocks})
}

// UnmarshalWire reads a parcel with references of its own.
func (p *parcel) UnmarshalWire(d *codec.Decoder) error {
	m, err := d.Parcel(func(h arena.Handle) { (&parcel{blocks: []arena.Handle{h}}).release() })
	p.body, p.blocks = m.Body, m.Blocks
	return err
}
