package codec

import (
	"fmt"
	"reflect"
)

// A TypePlan is a Plan of a type that is known only at run time, such as the type of a
// function's parameter. It may be used from several goroutines, each with its own Encoder or
// Decoder.
type TypePlan struct {
	node *node
	typ  reflect.Type
}

// PlanOfType is [PlanOf] for the type t.
func PlanOfType(t reflect.Type) (*TypePlan, error) {
	n, err := nodeOf(t)
	if err != nil {
		return nil, err
	}
	return &TypePlan{n, t}, nil
}

// Encode is [Plan.Encode]. It panics if v is not assignable to the plan's type.
func (p *TypePlan) Encode(e *Encoder, v reflect.Value) error {
	ptr := reflect.New(p.typ).Elem() // a codec wants an addressable value
	ptr.Set(v)
	err := p.node.encode(e, ptr)
	if err == nil && len(e.buf) > e.Limits.bytes() {
		e.checkRoom(0)
	}
	if err == nil {
		err = e.err
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", nameOf(p.typ), err)
	}
	return nil
}

// EncodeValue is [Encode] of a value with a dynamic type that is known only at run time. v must
// not be nil. The error wraps ErrType if the type cannot cross processes.
func EncodeValue(e *Encoder, v any) error {
	p, err := PlanOfType(reflect.TypeOf(v))
	if err != nil {
		return err
	}
	return p.Encode(e, reflect.ValueOf(v))
}

// Decode is [Plan.Decode]. The value has the plan's type; after an error it is the zero value.
func (p *TypePlan) Decode(d *Decoder) (reflect.Value, error) {
	v := reflect.New(p.typ).Elem()
	if err := p.node.decode(d, v); err != nil {
		return reflect.Zero(p.typ), fmt.Errorf("decode %s: %w", nameOf(p.typ), err)
	}
	return v, nil
}
