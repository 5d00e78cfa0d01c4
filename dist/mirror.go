package dist

import (
	"errors"

	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// mirrorModule replaces the parameters and buffers of net by copies on the given device. Tensors
// that are on it already stay. refresh copies the current elements of the originals to the
// copies again.
func mirrorModule(net nn.Module, at tensor.Place) (refresh func() error, err error) {
	type mirror struct{ of, own *tensor.Tensor }
	var all []mirror
	add := func(t *tensor.Tensor) {
		if t.Device() == at.Device {
			return
		}
		of, failed := t.ToDevice(t.Device()) // a view that keeps the original memory when t changes
		err = errors.Join(err, failed)
		all = append(all, mirror{of, t})
	}
	for p := range nn.Params(net) {
		add(p.T)
	}
	for _, t := range nn.Buffers(net) {
		add(t)
	}
	if err != nil {
		return nil, err
	}
	refresh = func() error {
		for _, m := range all {
			there, err := m.of.ToDevice(at.Device)
			if err != nil {
				return err
			}
			m.own.Set(there)
			if err := there.Close(); err != nil {
				return err
			}
		}
		return nil
	}
	return refresh, refresh()
}
