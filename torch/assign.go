package torch

import (
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch/internal/vision"
)

// As converts v to type T, and returns v itself if it is a T. As is meant to be called with the two
// results of a call. If err is not nil, As returns it unchanged:
//
//	sum, err := torch.As[*tensor.Tensor](conn.Recv(ctx))
//
// A number must fit the target type. A dict is converted to a struct by the tags of its fields, a
// numpy array to a tensor with a copy of its elements, and a tensor to an array. A *[Proxy] is
// converted to a [Container], [Queue], [Event], [Semaphore] or [Cond]. If the conversion is
// impossible, As closes the tensors and files in v, and the error wraps [ErrUnsupported].
func As[T any](v any, err error) (T, error) {
	var to T
	if err != nil {
		return to, err
	}
	if err := assign(&to, v); err != nil {
		CloseAll(v)
		return *new(T), fmt.Errorf("convert: %w", err)
	}
	return to, nil
}

// assigner converts the values of messages.
var assigner = value.Assigner{Own: assignOwn}

// assign converts a received value by the rules of [As] and stores it at dst, which must be a
// non-nil pointer. On an error the caller still owns v.
func assign(dst, v any) error { return assigner.Assign(dst, v) }

// assignOwn is the [value.Assigner] hook for values that exist in messages only, such as proxies
// and parameters: it converts v to the type of dst and stores it there. ok is false if v is
// another value or does not fit dst; ok is true with an error if v must not be converted.
func assignOwn(dst reflect.Value, v any) (ok bool, err error) {
	isTensor := dst.Type() == reflect.TypeFor[*tensor.Tensor]()
	switch v := v.(type) {
	case interface{ self() *Proxy }:
		if p := v.self().asType(dst.Type()); p != nil {
			dst.Set(reflect.ValueOf(p))
			return true, nil
		}
	case *CUDATensor:
		if isTensor {
			return true, ErrCUDA
		}
	case *autograd.Param:
		if isTensor {
			dst.Set(reflect.ValueOf(v.T))
			return true, nil
		}
	case *python.Record, python.Global: // an object or a function
		if steps := reflect.TypeFor[image.Pipeline](); steps.AssignableTo(dst.Type()) {
			return true, assignSteps(dst, v)
		}
	}
	return false, nil
}

// assignSteps converts a torchvision transform to steps for images with three channels, and
// stores them in dst. The steps of a transform such as PILToTensor are empty, but not nil,
// because nil means no transform.
func assignSteps(dst reflect.Value, transform any) error {
	steps, _, err := vision.Steps(transform, 3)
	if err != nil {
		return err
	}
	if steps == nil {
		steps = image.Pipeline{}
	}
	dst.Set(reflect.ValueOf(steps))
	return nil
}
