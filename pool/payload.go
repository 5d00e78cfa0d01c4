package pool

import (
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A payload contains encoded values and owns references to their blocks. Its holder must call
// releaseBlocks once it no longer needs them. It may be sent any number of times.
type payload struct {
	body   []byte
	blocks []arena.Handle
	kept   []any // objects that must stay reachable while the payload is in use
	values any   // a slice of the values themselves, in place of body; never crosses a process boundary
}

var encoders = sync.Pool{New: func() any { return new(codec.Encoder) }}

// smallBody is the initial buffer size of an encoding. It fits most small values; a smaller buffer
// would not be faster.
const smallBody = 64

// packPayload returns a payload with the values written by encode. The caller must release it.
// Values that are given away are closed if packPayload succeeds. If gone is true they are closed
// in any case, even if encode panics, because no other code would close them.
func packPayload(gone bool, encode func(e *codec.Encoder) error) (p payload, err error) {
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
	if err := p.retainBlocks(m.Blocks); err != nil {
		return p, err
	}
	gone = true
	return p, nil
}

// packValues returns a payload with the given values. The caller keeps ownership of the values,
// and must release the payload.
func packValues[T any](plan *codec.Plan[T], vs []T) (payload, error) {
	return packPayload(false, func(e *codec.Encoder) error { return plan.EncodeAll(e, vs) })
}

// packLocal is like packValues, but the payload is for a worker on a goroutine of this process.
// It contains a copy of the slice instead of its encoding if assigning a value has the same
// effect as sending it.
func packLocal[T any](f form[T], vs []T) (payload, error) {
	if f.copied {
		return payload{values: slices.Clone(vs)}, nil
	}
	return packValues(f.plan, vs)
}

// clone returns a payload with the same contents and its own references to the blocks, which the
// caller must release.
func (p payload) clone() (payload, error) {
	q := payload{body: p.body, values: p.values}
	return q, q.retainBlocks(p.blocks)
}

// retainBlocks retains all blocks and adds them to p, or none if it returns an error. p must
// have no blocks.
func (p *payload) retainBlocks(blocks []arena.Handle) error {
	if len(blocks) == 0 {
		return nil
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	for _, h := range blocks {
		if err := d.Retain(h); err != nil {
			p.releaseBlocks()
			return err
		}
		p.blocks = append(p.blocks, h)
	}
	return nil
}

// releaseBlocks drops the references to the blocks. Later calls do nothing. It ignores errors,
// because the domain may already be closed.
func (p *payload) releaseBlocks() {
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

// decodeValues calls decode with a decoder for the payload's values. decode must decode all of
// them. The decoded values own references of their own, so the payload must still be released.
func (p payload) decodeValues(decode func(d *codec.Decoder) error) error {
	d := decoders.Get().(*codec.Decoder)
	d.Reset(codec.Message{Body: p.body, Blocks: p.blocks}, p)
	err := decode(d)
	if err == nil {
		err = d.Finish()
	}
	decoders.Put(d)
	return err
}

// decodeNext decodes one value. The value is valid even if decoding a later one fails.
func decodeNext[T any](plan *codec.Plan[T], d *codec.Decoder) (T, error) {
	v, err := plan.Decode(d)
	d.Done(err == nil)
	return v, err
}

// unpackValues decodes the payload's values into vs, which must have their number. The caller
// must call markAll or markFirst of the returned users, to say whether the values are used.
// After an error the values are released.
func unpackValues[T any](plan *codec.Plan[T], p payload, vs []T) (u users, err error) {
	if all, ok := p.values.([]T); ok && len(all) == len(vs) {
		copy(vs, all)
		return nil, nil
	}
	err = p.decodeValues(func(d *codec.Decoder) (err error) {
		if plan.Plain() {
			return plan.DecodeAll(d, vs)
		}
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
		u.markAll(false)
		return nil, err
	}
	return u, nil
}

// users contains the watchers of a list of values, by index, which release the values' shared
// memory if the values are not used. They must be told whether each value is used, because an
// unused value releases its shared memory. It is nil if no value has a watcher.
type users []codec.Watchers

func (u users) markAll(used bool) {
	for _, w := range u {
		w.Done(used)
	}
}

// markFirst marks the first value as used and returns the users of the other values.
func (u users) markFirst() users {
	if u == nil {
		return nil
	}
	u[0].Done(true)
	return u[1:]
}

// Take implements [codec.Blocks].
func (p payload) Take(i int) (arena.Handle, error) {
	d, err := arena.Default()
	if err != nil {
		return 0, err
	}
	return p.blocks[i], d.Retain(p.blocks[i])
}

// MarshalWire encodes the payload. The message takes its own references to the blocks.
func (p *payload) MarshalWire(e *codec.Encoder) error {
	return e.Parcel(codec.Message{Body: p.body, Blocks: p.blocks})
}

// UnmarshalWire decodes a payload, which has its own references to the blocks.
func (p *payload) UnmarshalWire(d *codec.Decoder) error {
	m, err := d.Parcel(func(h arena.Handle) { (&payload{blocks: []arena.Handle{h}}).releaseBlocks() })
	p.body, p.blocks = m.Body, m.Blocks
	return err
}
