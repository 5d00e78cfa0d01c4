package autograd

import (
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Param is a trainable tensor: a leaf of graphs, in which gradients accumulate.
//
// A Param can be sent to other processes. Sending moves T to shared memory, so that all processes
// train the same values. If Grad exists when the Param is sent, it is shared as well. Otherwise
// each process creates its own Grad in its first Backward, as Hogwild training needs. A process
// that receives a Param must close it.
type Param struct {
	Name   string         // for messages; nn.State uses names of struct fields
	T      *tensor.Tensor // value; its dtype must be a floating-point or complex one unless Frozen
	Grad   *tensor.Tensor // sum of gradients since ZeroGrad; nil before the first Backward
	Frozen bool           // whether Backward and optimizers skip the Param

	leaf  atomic.Pointer[Var] // last result of Var
	hooks hooks
}

// A message contains a Param only once, so that a module and its optimizer, and layers with shared
// weights, still refer to the same Param after decoding.
func init() {
	codec.CustomOnce((*Param).marshal, (*Param).unmarshal)
	codec.RegisterType[*Param]("autograd.Param")
}

// NewParam returns a parameter with value t, and takes ownership of t: [Param.Close] closes it.
func NewParam(name string, t *tensor.Tensor) *Param { return &Param{Name: name, T: t} }

// requireDifferentiable panics with [tensor.ErrOperand] unless t has a floating-point or complex
// dtype. Only these have gradients.
func requireDifferentiable(what string, t *tensor.Tensor) {
	switch t.DType() {
	case tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128:
	default:
		misuse(tensor.ErrOperand, "%s: got dtype %v, want floats or complex numbers, which have gradients",
			what, t.DType())
	}
}

// Var returns the parameter as a value of a graph. If a graph uses it several times, the gradients
// are added. A Param must not be used concurrently, because Backward writes its Grad. Goroutines
// that train one tensor together must use one Param each, over views of the tensor.
func (p *Param) Var() *Var {
	if v := p.leaf.Load(); v != nil && v.t == p.T && v.needs != p.Frozen {
		return v
	}
	v := &Var{t: p.T, param: p, needs: !p.Frozen}
	p.leaf.Store(v)
	return v
}

// ZeroGrad sets the elements of Grad to zero in place, so it affects processes that share it.
func (p *Param) ZeroGrad() {
	if p.Grad != nil {
		p.Grad.Zero()
	}
}

func (p *Param) gradient() *tensor.Tensor {
	if p.Grad == nil {
		p.Grad = p.T.NewZeros(p.T.DType(), p.T.Shape()...)
	}
	return p.Grad
}

// Share moves T, and Grad if it exists, to shared memory. The error wraps shm.ErrNoSpace if the
// domain is full, and [tensor.ErrClosed] if T is nil or closed.
func (p *Param) Share() error {
	if p.T == nil {
		return fmt.Errorf("parameter %q has no value: %w", p.Name, tensor.ErrClosed)
	}
	for _, t := range p.listTensors() {
		on := heapOf(t)
		if err := t.Share(); err != nil {
			return err
		}
		recordFreed(on)
	}
	return nil
}

// Close closes T and Grad in this process. It is idempotent.
func (p *Param) Close() error {
	var first error
	for _, t := range p.listTensors() {
		if err := t.Close(); err != nil && first == nil {
			first = fmt.Errorf("close parameter %s: %w", p.Name, err)
		}
	}
	return first
}

func (p *Param) listTensors() (all []*tensor.Tensor) {
	for _, t := range []*tensor.Tensor{p.T, p.Grad} {
		if t != nil {
			all = append(all, t)
		}
	}
	return all
}

// Wire tags of a Param.
const (
	withoutGrad = iota // [name, frozen, T]
	withGrad           // [name, frozen, T, Grad]
)

var paramTags = &codec.Tags{Type: "parameter", Fields: []int{withoutGrad: 3, withGrad: 4}}

// marshal encodes the name, frozen, T and, if it exists, Grad. The error wraps tensor.ErrClosed if
// T is nil.
func (p *Param) marshal(e *codec.Encoder) error {
	if p.T == nil {
		return fmt.Errorf("send parameter %q without a value: %w", p.Name, tensor.ErrClosed)
	}
	tag := withGrad
	if p.Grad == nil {
		tag = withoutGrad
	}
	e.Tag(paramTags, tag)
	e.String(p.Name)
	e.Bool(p.Frozen)
	for _, t := range p.listTensors() {
		on := heapOf(t)
		if err := codec.Encode(e, t); err != nil {
			return fmt.Errorf("send parameter %s: %w", p.Name, err)
		}
		recordFreed(on)
	}
	return e.Err()
}

// unmarshal decodes a Param. The error wraps wire.ErrFormat or an error of tensors.
func (p *Param) unmarshal(d *codec.Decoder) error {
	tag, err := d.Tag(paramTags)
	if err != nil {
		return err
	}
	if p.Name, err = d.String(); err != nil {
		return err
	}
	if p.Frozen, err = d.Bool(); err != nil {
		return err
	}
	if p.T, err = codec.Decode[*tensor.Tensor](d); err != nil {
		return err
	}
	if p.T == nil {
		return fmt.Errorf("read parameter %q without a value: %w", p.Name, codec.ErrFormat)
	}
	if tag == withoutGrad {
		return nil
	}
	if p.Grad, err = codec.Decode[*tensor.Tensor](d); err != nil {
		return err
	}
	return p.checkGrad()
}

// checkGrad returns an error that wraps wire.ErrFormat unless the shape and dtype of Grad match
// T.
func (p *Param) checkGrad() error {
	if p.Grad == nil {
		return fmt.Errorf("read parameter %q: missing gradient: %w", p.Name, codec.ErrFormat)
	}
	if p.Grad.DType() != p.T.DType() || !sameShape(p.Grad.Shape(), p.T.Shape()) {
		return fmt.Errorf("read parameter %q of %v %v: got a gradient of %v %v: %w", p.Name,
			p.T.DType(), p.T.Shape(), p.Grad.DType(), p.Grad.Shape(), codec.ErrFormat)
	}
	return nil
}
