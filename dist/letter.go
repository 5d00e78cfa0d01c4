package dist

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/tensor"
)

// A letter is what one rank sends to another: a tensor, or a value.
type letter struct {
	from, tag int
	tensor    *tensor.Tensor // nil for a value
	value     parcel
}

// String says what is in the letter.
func (l letter) String() string {
	if l.tensor != nil {
		return fmt.Sprintf("%v %v", l.tensor.DType(), l.tensor.Shape())
	}
	return "a " + l.value.kind
}

// close gives back what the letter holds, if nobody reads it.
func (l letter) close() error {
	if l.tensor != nil {
		return l.tensor.Close()
	}
	return l.value.release()
}

// The tags of a letter.
const (
	tensorLetter = iota // [from, tag, tensor]
	valueLetter         // [from, tag, type, parcel]
)

var letterTags = &wire.Tags{Type: "letter", Fields: []int{tensorLetter: 3, valueLetter: 4}}

// MarshalWire writes from, tag, and the tensor, or the value's type and the value.
func (l letter) MarshalWire(e *wire.Encoder) error {
	form := valueLetter
	if l.tensor != nil {
		form = tensorLetter
	}
	e.Tag(letterTags, form)
	e.Int(int64(l.from))
	e.Int(int64(l.tag))
	if form == tensorLetter {
		return wire.Encode(e, l.tensor)
	}
	e.String(l.value.kind)
	return l.value.marshal(e)
}

// UnmarshalWire reads what MarshalWire wrote.
func (l *letter) UnmarshalWire(d *wire.Decoder) error {
	form, err := d.Tag(letterTags)
	if err != nil {
		return err
	}
	from, err := d.Int()
	if err != nil {
		return err
	}
	tag, err := d.Int()
	if err != nil {
		return err
	}
	if from < 0 || from >= maxSize {
		return fmt.Errorf("read a letter of rank %d: %w", from, wire.ErrFormat)
	}
	l.from, l.tag = int(from), int(tag)
	if form == tensorLetter {
		if l.tensor, err = wire.Decode[*tensor.Tensor](d); err == nil && l.tensor == nil {
			err = fmt.Errorf("read a letter without its tensor: %w", wire.ErrFormat)
		}
		return err
	}
	if l.value.kind, err = d.String(); err != nil {
		return err
	}
	return l.value.unmarshal(d)
}

// A parcel is a value of a type that only its receiver knows: the message of it, with the blocks
// that it holds. What is packed holds them by the value, what has arrived by itself.
type parcel struct {
	kind   string // the type
	body   []byte
	blocks []shm.Handle
}

func kindOf[T any]() string { return reflect.TypeFor[T]().String() }

// pack packs v for as long as until done is called, with whether it was sent. Copies of its tensors
// are to go, or the tensors.
func pack[T any](v T, copies bool) (p parcel, done func(sent bool), err error) {
	plan, err := wire.PlanOf[T]()
	if err != nil {
		return parcel{}, nil, err
	}
	e := &wire.Encoder{ByValue: copies}
	if err := plan.Encode(e, v); err != nil {
		e.Done(false)
		return parcel{}, nil, err
	}
	m := e.Message()
	return parcel{kindOf[T](), m.Body, m.Blocks}, e.Done, nil
}

// unpack returns the value of a parcel that has arrived, which is used up.
func unpack[T any](p parcel) (v T, err error) {
	defer func() { err = errors.Join(err, p.release()) }()
	if kind := kindOf[T](); p.kind != kind {
		return v, fmt.Errorf("%w: %s was sent, and %s is received", ErrMismatch, p.kind, kind)
	}
	return decode[T](p)
}

// decode returns the value of a parcel, which is kept.
func decode[T any](p parcel) (v T, err error) {
	plan, err := wire.PlanOf[T]()
	if err != nil {
		return v, err
	}
	var d wire.Decoder
	d.Reset(wire.Message{Body: p.body, Blocks: p.blocks}, p)
	if v, err = plan.Decode(&d); err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	return v, err
}

// Take implements wire.Blocks.
func (p parcel) Take(i int) (shm.Handle, error) {
	d, err := shm.Default()
	if err != nil {
		return 0, err
	}
	return p.blocks[i], d.Retain(p.blocks[i])
}

// release drops the references that a parcel has that arrived.
func (p parcel) release() (err error) {
	if len(p.blocks) == 0 {
		return nil
	}
	d, err := shm.Default()
	if err != nil {
		return err
	}
	for _, h := range p.blocks {
		err = errors.Join(err, d.Release(h))
	}
	return err
}

func (p parcel) marshal(e *wire.Encoder) error {
	return e.Parcel(wire.Message{Body: p.body, Blocks: p.blocks})
}

func (p *parcel) unmarshal(d *wire.Decoder) error {
	m, err := d.Parcel(func(h shm.Handle) { parcel{blocks: []shm.Handle{h}}.release() })
	p.body, p.blocks = m.Body, m.Blocks
	return err
}
