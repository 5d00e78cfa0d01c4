package nn

import (
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Clone returns a deep copy of m. Its parameters and buffers are new tensors, on the heap or on
// the devices of the originals, and its parameters have no gradients. A parameter or buffer that
// m uses twice is used twice by the copy. Other fields are copied by assignment, so the copy
// shares a random number generator with m.
func Clone[M Module](m M) M {
	c := cloner{params: map[*autograd.Param]*autograd.Param{}, buffers: map[*tensor.Tensor]*tensor.Tensor{}}
	return c.cloneValue(reflect.ValueOf(&m).Elem()).Interface().(M)
}

type cloner struct {
	params  map[*autograd.Param]*autograd.Param
	buffers map[*tensor.Tensor]*tensor.Tensor
}

func (c cloner) cloneValue(v reflect.Value) reflect.Value {
	switch p := v.Interface().(type) {
	case *autograd.Param:
		return reflect.ValueOf(c.cloneParam(p))
	case *tensor.Tensor:
		return reflect.ValueOf(c.cloneBuffer(p))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice:
		if v.IsNil() {
			return v
		}
	}
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Interface:
		out.Set(c.cloneValue(v.Elem()))
	case reflect.Pointer:
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(c.cloneValue(v.Elem()))
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		c.cloneElements(out, v)
	case reflect.Array:
		c.cloneElements(out, v)
	case reflect.Struct:
		out.Set(v)
		c.cloneFields(out, v)
	default:
		out.Set(v)
	}
	return out
}

func (c cloner) cloneElements(out, v reflect.Value) {
	for i := range v.Len() {
		out.Index(i).Set(c.cloneValue(v.Index(i)))
	}
}

// cloneFields replaces the fields of out that belong to the module, as defined by [walk], by
// clones. out must already be a shallow copy of v.
func (c cloner) cloneFields(out, v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("wire") != "-" {
			out.Field(i).Set(c.cloneValue(v.Field(i)))
		}
	}
}

func (c cloner) cloneParam(p *autograd.Param) *autograd.Param {
	if p == nil {
		return nil
	}
	if c.params[p] == nil {
		c.params[p] = &autograd.Param{Name: p.Name, T: p.T.Clone(), Frozen: p.Frozen}
	}
	return c.params[p]
}

func (c cloner) cloneBuffer(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	if c.buffers[t] == nil {
		c.buffers[t] = t.Clone()
	}
	return c.buffers[t]
}
