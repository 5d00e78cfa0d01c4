package data

import (
	"fmt"

	"github.com/shoal-mp/shoal/tensor"
)

// deviceOf returns the device on which a data set in memory has samples, nil if it has none there.
func deviceOf(source any) tensor.Device {
	var parts []Any[Dataset]
	switch d := source.(type) {
	case *TensorDataset:
		return layoutOf(d.Tensors, 1).device()
	case *valuedDataset:
		return deviceOf(d.Of.Value)
	case combination:
		parts = d.parts()
	}
	for _, p := range parts {
		if dev := deviceOf(p.Value); dev != nil {
			return dev
		}
	}
	return nil
}

// apart is the error of samples on a device that processes are to load.
func apart(dev tensor.Device) error {
	return fmt.Errorf("%w: they are on %v; take Workers 0, or Goroutines, or a Loader in each process", ErrPlace, dev)
}

// pick copies rows of src to dst, on their device.
func pick(dst, src *tensor.Tensor, rows []int) error {
	at := make([]int64, len(rows))
	for k, i := range rows {
		at[k] = int64(i)
	}
	index, err := tensor.FromSlice(at, len(at)).ToDevice(src.Device())
	if err != nil {
		return err
	}
	picked := tensor.IndexSelect(src, 0, index)
	dst.CopyFrom(picked)
	closeAll(Batch{index, picked})
	return nil
}
