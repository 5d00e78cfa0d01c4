package pickle

import (
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// DecodeAs returns the message as a value of type T, for example a struct for a dict:
//
//	type Rollout struct {
//		Step int            `torch:"step"`
//		Obs  *tensor.Tensor `torch:"obs"`
//	}
//	rollout, err := pickle.DecodeAs[Rollout](message)
//
// The tags are as for [Encode]. A number must fit its target, and every key of the dict must
// have a field; a field without a key is zero. A numpy.ndarray may also be a *tensor.Tensor or
// an Array. The error wraps [ErrUnsupported] if a value does not fit its target. Otherwise
// DecodeAs is like [Value.Decode], with the same errors and the same ownership of tensors.
func DecodeAs[T any](v Value) (T, error) {
	var to T
	got, err := v.Decode()
	if err != nil {
		return to, err
	}
	if err := assigner.Assign(&to, got); err != nil {
		return *new(T), fmt.Errorf("decode a message of Python as %T: %w", to, convertError(err))
	}
	return to, nil
}

// assigner converts decoded values.
var assigner = value.Assigner{Own: assignOwn}

// assignOwn stores v in dst and returns true if v is an *[Array] and dst is a *tensor.Tensor or
// an Array. Otherwise it returns false, and the caller must assign v.
func assignOwn(dst reflect.Value, v any) (ok bool, err error) {
	a, ok := v.(*Array)
	switch {
	case !ok:
	case dst.Type() == reflect.TypeFor[*tensor.Tensor]():
		dst.Set(reflect.ValueOf(a.Tensor))
		return true, nil
	case dst.Type() == reflect.TypeFor[Array]():
		dst.Set(reflect.ValueOf(*a))
		return true, nil
	}
	return false, nil
}
