package codec

import (
	"fmt"
	"reflect"
)

// A TypePlan is a Plan of a type that is known only at run time, such as the type of a function's
// parameter.
type TypePlan struct {
	node *node
	typ  reflect.Type
}

// PlanOfType is PlanOf of t.
func PlanOfType(t reflect.Type) (*TypePlan, error) {
	n, err := nodeOf(t)
	if err != nil {
		return nil, err
	}
	return &TypePlan{n, t}, nil
}

// Encode is Plan.Encode. v must be assignable to the plan's type.
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

// EncodeValue is Encode of a value with a type that is known only at run time. The error wraps
// ErrType if the type cannot cross processes.
func EncodeValue(e *Encoder, v any) error {
	p, err := PlanOfType(reflect.TypeOf(v))
	if err != nil {
		return err
	}
	return p.Encode(e, reflect.ValueOf(v))
}

// Decode is Plan.Decode.
func (p *TypePlan) Decode(d *Decoder) (reflect.Value, error) {
	v := reflect.New(p.typ).Elem()
	if err := p.node.decode(d, v); err != nil {
		return reflect.Zero(p.typ), fmt.Errorf("decode %s: %w", nameOf(p.typ), err)
	}
	return v, nil
}
