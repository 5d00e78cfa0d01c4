package data

import (
	"fmt"

	"github.com/shoal-mp/shoal/tensor"
)

// deviceOf returns the device that holds the samples of a data set in memory, or nil for the host
// and for other data sets.
func deviceOf(source any) tensor.Device {
	var parts []Any[Dataset]
	switch d := source.(type) {
	case *TensorDataset:
		return layoutOf(d.Tensors, 1).device()
	case *valuedDataset:
		return deviceOf(d.Of.Value)
	case combination:
		parts = d.datasets()
	}
	for _, p := range parts {
		if dev := deviceOf(p.Value); dev != nil {
			return dev
		}
	}
	return nil
}

// deviceError returns the [ErrPlace] error for samples on dev with worker processes.
func deviceError(dev tensor.Device) error {
	return fmt.Errorf("%w: samples are on %v: set Workers to 0, set Goroutines, or use a Loader in each process",
		ErrPlace, dev)
}

// pickRowsOn copies the given rows of src, which must be in range, to dst. Both must be on the
// same device. The error is the device's.
func pickRowsOn(dst, src *tensor.Tensor, rows []int) error {
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
