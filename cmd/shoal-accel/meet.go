package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/doctor"
	"github.com/shoal-mp/shoal/tensor"
)

// patience is the time limit for the other process. It must load the driver and create a context.
const patience = 30 * time.Second

// meet runs in another process. It fills a received tensor with ones, waits for the device and
// closes the tensor.
var meet = shoal.Register("doctor meet", func(_ context.Context, _ int, x *tensor.Tensor) error {
	err := tensor.Catch(func() { x.Fill(1) })
	return errors.Join(err, x.Device().(*cuda.Device).Synchronize(), x.Close())
})

// examineDevices returns the report of [doctor.Examine] with one more check for each usable device:
// whether another process can receive a tensor of this device and write to it.
func examineDevices(ctx context.Context) *doctor.Report {
	r := doctor.Examine()
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Unusable != "" {
			continue
		}
		w := doctor.Way{Name: "write to a tensor from another process"}
		if err := tryProcess(ctx, i); err != nil {
			w.Err, w.Lost = err.Error(), "processes cannot share tensors on this device"
		}
		d.Ways = append(d.Ways, w)
	}
	return r
}

func tryProcess(ctx context.Context, device int) (err error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer from the other process within %v",
		patience))
	defer stop()
	dev, err := cuda.Get(device)
	if err != nil {
		return err
	}
	x, err := tensor.On(dev).Zeros(tensor.Float32, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	g, err := meet.Start(ctx, 1, x, shoal.Options{})
	if err == nil {
		err = g.Wait()
	}
	if err != nil {
		return err
	}
	got, err := x.CPU()
	if err != nil {
		return err
	}
	defer got.Close()
	if v := tensor.Data[float32](got)[0]; v != 1 {
		return fmt.Errorf("the other process wrote 1, got %v", v)
	}
	return nil
}
