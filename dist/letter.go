package dist

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A letter is a point-to-point message: a tensor or a value.
type letter struct {
	from, tag int
	tensor    *tensor.Tensor // nil for a value
	value     payload
}

// String describes the content for error messages.
func (l letter) String() string {
	if l.tensor != nil {
		return fmt.Sprintf("%v %v", l.tensor.DType(), l.tensor.Shape())
	}
	return "a " + l.value.kind
}

// close releases the content of a letter that is not read.
func (l letter) close() error {
	if l.tensor != nil {
		return l.tensor.Close()
	}
	return l.value.releaseBlocks()
}

// The wire forms of a letter.
const (
	tensorLetter = iota // [from, tag, tensor]
	valueLetter         // [from, tag, type, payload]
)

var letterTags = &codec.Tags{Type: "letter", Fields: []int{tensorLetter: 3, valueLetter: 4}}

// MarshalWire encodes the letter in one of the forms of letterTags.
func (l letter) MarshalWire(e *codec.Encoder) error {
	form := valueLetter
	if l.tensor != nil {
		form = tensorLetter
	}
	e.Tag(letterTags, form)
	e.Int(int64(l.from))
	e.Int(int64(l.tag))
	if form == tensorLetter {
		return codec.Encode(e, l.tensor)
	}
	e.String(l.value.kind)
	return l.value.marshal(e)
}

// UnmarshalWire decodes the encoding of MarshalWire. It returns [wire.ErrFormat] if the input is
// invalid.
func (l *letter) UnmarshalWire(d *codec.Decoder) error {
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
		return fmt.Errorf("read message: invalid rank %d: %w", from, codec.ErrFormat)
	}
	l.from, l.tag = int(from), int(tag)
	if form == tensorLetter {
		if l.tensor, err = codec.Decode[*tensor.Tensor](d); err == nil && l.tensor == nil {
			err = fmt.Errorf("read message: tensor is missing: %w", codec.ErrFormat)
		}
		return err
	}
	if l.value.kind, err = d.String(); err != nil {
		return err
	}
	return l.value.unmarshal(d)
}

// A payload is an encoded value of a type that only the receiver knows, and the shared blocks that
// it refers to. The sender's value keeps the blocks of a packed payload alive. A received payload
// has references of its own, and must be unpacked or released.
type payload struct {
	kind   string // name of the type
	body   []byte
	blocks []arena.Handle
}

func kindOf[T any]() string { return reflect.TypeFor[T]().String() }

// packValue encodes v. The caller must call done with the outcome of the send; v's blocks are
// held until then. done is nil if there is an error. If copies is set, the contents of tensors
// are encoded instead of references to their memory.
func packValue[T any](v T, copies bool) (p payload, done func(sent bool), err error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return payload{}, nil, err
	}
	e := &codec.Encoder{ByValue: copies}
	if err := plan.Encode(e, v); err != nil {
		e.Done(false)
		return payload{}, nil, err
	}
	m := e.Message()
	return payload{kindOf[T](), m.Body, m.Blocks}, e.Done, nil
}

// unpackValue decodes a received payload and releases it, also if there is an error. The caller
// must close the resources in the value. It returns [ErrMismatch] if the payload holds another
// type than T.
func unpackValue[T any](p payload) (v T, err error) {
	defer func() { err = errors.Join(err, p.releaseBlocks()) }()
	if kind := kindOf[T](); p.kind != kind {
		return v, fmt.Errorf("%w: sender sent %s, receiver wants %s", ErrMismatch, p.kind, kind)
	}
	return decodePayload[T](p)
}

// decodePayload decodes a payload without releasing it. The value has references of its own; the
// caller must close its resources.
func decodePayload[T any](p payload) (v T, err error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return v, err
	}
	var d codec.Decoder
	d.Reset(codec.Message{Body: p.body, Blocks: p.blocks}, p)
	if v, err = plan.Decode(&d); err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	return v, err
}

// Take implements [codec.Blocks]. It adds a reference for the decoded value.
func (p payload) Take(i int) (arena.Handle, error) {
	d, err := arena.Default()
	if err != nil {
		return 0, err
	}
	return p.blocks[i], d.Retain(p.blocks[i])
}

// releaseBlocks drops the references of a received payload.
func (p payload) releaseBlocks() (err error) {
	if len(p.blocks) == 0 {
		return nil
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	for _, h := range p.blocks {
		err = errors.Join(err, d.Release(h))
	}
	return err
}

func (p payload) marshal(e *codec.Encoder) error {
	return e.Parcel(codec.Message{Body: p.body, Blocks: p.blocks})
}

func (p *payload) unmarshal(d *codec.Decoder) error {
	m, err := d.Parcel(func(h arena.Handle) { payload{blocks: []arena.Handle{h}}.releaseBlocks() })
	p.body, p.blocks = m.Body, m.Blocks
	return err
}
