package tensor_test

import (
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Full accepts the range of each unsigned dtype, and negative numbers wrap around, as torch.full
// does with PyTorch 2.15.
func TestFull_RangeOfUnsignedIntegers(t *testing.T) {
	for _, tt := range []struct {
		dt    tensor.DType
		v     float64
		want  uint64
		panic bool
	}{
		{tensor.Uint8, 255, 255, false}, {tensor.Uint8, 256, 0, true}, {tensor.Uint8, -5, 251, false},
		{tensor.Uint16, 40000, 40000, false}, {tensor.Uint16, 65536, 0, true}, {tensor.Uint16, -5, 65531, false},
		{tensor.Uint32, 3e9, 3e9, false}, {tensor.Uint32, 5e9, 0, true}, {tensor.Uint32, -5, 1<<32 - 5, false},
		{tensor.Uint64, 5e9, 5e9, false}, {tensor.Uint64, 1 << 63, 1 << 63, false},
		{tensor.Uint64, 1 << 64, 0, true},
	} {
		var x *tensor.Tensor
		err := tensor.Catch(func() { x = tensor.Full(tt.dt, tt.v, 2) })
		if tt.panic {
			testutil.ErrorIs(t, err, tensor.ErrArgument)
			continue
		}
		testutil.NoError(t, err)
		var got uint64
		switch tt.dt {
		case tensor.Uint8:
			got = uint64(tensor.Data[uint8](x)[1])
		case tensor.Uint16:
			got = uint64(tensor.Data[uint16](x)[1])
		case tensor.Uint32:
			got = uint64(tensor.Data[uint32](x)[1])
		case tensor.Uint64:
			got = tensor.Data[uint64](x)[1]
		}
		if got != tt.want {
			t.Errorf("Full(%v, %v) has %d, want %d", tt.dt, tt.v, got, tt.want)
		}
	}
}
