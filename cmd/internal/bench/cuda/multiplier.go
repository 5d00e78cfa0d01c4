package cuda

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/tensor"
)

// A multiplier multiplies two square matrices on a device. Each multiplication allocates its
// result. The caller must call close.
type multiplier struct {
	dev  *cuda.Device
	a, b *tensor.Tensor
}

func newMultiplier(dev *cuda.Device, dt tensor.DType, n int) (m *multiplier, err error) {
	m = &multiplier{dev: dev}
	numbers := func(seed uint64) (*tensor.Tensor, error) {
		return tensor.RandN(dt, tensor.NewGenerator(seed), n, n).ToDevice(dev)
	}
	if m.a, err = numbers(1); err != nil {
		return nil, err
	}
	if m.b, err = numbers(2); err != nil {
		return nil, errors.Join(err, m.a.Close())
	}
	return m, nil
}

func (m *multiplier) measure(_ context.Context, rounds int) (err error) {
	defer func() { // device errors are panics
		if p, ok := recover().(error); ok {
			err = p
		}
	}()
	for range rounds {
		if err := tensor.MatMul(m.a, m.b).Close(); err != nil {
			return err
		}
	}
	return m.dev.Synchronize()
}

func (m *multiplier) close() error { return errors.Join(m.a.Close(), m.b.Close()) }
