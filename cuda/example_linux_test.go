package cuda_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/tensor"
)

// exampleOn gives an example a simulated device, so that it runs everywhere.
func exampleOn(f func(dev *cuda.Device) error) {
	devices, err := sim.Create(1, 64<<20)
	if err != nil {
		log.Fatal(err)
	}
	domain, err := arena.New(arena.Options{Budget: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	before, paths := arena.Current(), os.Getenv(cuda.SimulateKey)
	arena.SetDefault(domain)
	if err = errors.Join(cuda.Close(), os.Setenv(cuda.SimulateKey, devices.Paths()[0])); err == nil {
		var dev *cuda.Device
		if dev, err = cuda.Current(); err == nil {
			err = f(dev)
		}
	}
	if err = errors.Join(err, cuda.Close(), os.Setenv(cuda.SimulateKey, paths)); err != nil {
		log.Fatal(err)
	}
	arena.SetDefault(before)
	if err := errors.Join(domain.Close(), devices.Close()); err != nil {
		log.Fatal(err)
	}
}

// Operations compute where their operands are.
func ExampleDevice() {
	exampleOn(func(dev *cuda.Device) error {
		x, err := tensor.On(dev).Ones(tensor.Float32, 2, 3)
		if err != nil {
			return err
		}
		defer x.Close()
		sum := tensor.Sum(x.MulScalarInPlace(2))
		defer sum.Close()
		near, err := sum.CPU()
		if err != nil {
			return err
		}
		defer near.Close()
		fmt.Println(x.Device(), near.Item())
		return nil
	})
	// Output: cuda:0 12
}

// A copy goes on beside the device's own work, from one event to another.
func ExampleStream() {
	exampleOn(func(dev *cuda.Device) error {
		x, err := tensor.On(dev).Full(tensor.Float32, 5, 100)
		if err != nil {
			return err
		}
		defer x.Close()
		y, err := tensor.On(dev).Empty(tensor.Float32, 100)
		if err != nil {
			return err
		}
		defer y.Close()
		s, err := dev.NewStream()
		if err != nil {
			return err
		}
		defer s.Close()
		own, err := dev.Stream()
		if err != nil {
			return err
		}
		var filled, copied *cuda.Event
		if filled, err = own.Record(); err == nil {
			err = s.Wait(filled)
		}
		if err == nil {
			err = s.Copy(y, x)
		}
		if err == nil {
			copied, err = s.Record()
		}
		if err == nil {
			err = own.Wait(copied) // before it uses y
		}
		if err != nil {
			return err
		}
		fmt.Println(tensor.At[float32](y, 99))
		return nil
	})
	// Output: 5
}

// A library of the same process gets at the memory by its address, and Shoal at the library's.
func ExampleArrayInterface() {
	exampleOn(func(dev *cuda.Device) error {
		x, err := tensor.On(dev).Arange(tensor.Float32, 0, 6, 1)
		if err != nil {
			return err
		}
		defer x.Close()
		a, err := cuda.ArrayInterfaceOf(x)
		if err != nil {
			return err
		}
		theirs := cuda.ArrayInterface{Shape: []int{2, 3}, Typestr: a.Typestr, Data: a.Data, Stream: a.Stream}
		y, err := theirs.Tensor(dev, func() error { return nil })
		if err != nil {
			return err
		}
		defer y.Close()
		fmt.Println(a.Typestr, y.Shape(), tensor.At[float32](y, 1, 2))
		return nil
	})
	// Output: <f4 [2 3] 5
}

// PyTorch, CuPy and Numba open memory by its handle.
func ExampleLegacyDevice() {
	exampleOn(func(dev *cuda.Device) error {
		x, err := tensor.Ones(tensor.Float32, 4).ToDevice(cuda.LegacyDevice{Device: dev})
		if err != nil {
			return err
		}
		defer x.Close()
		h, off, err := cuda.HandleOf(x)
		if err != nil {
			return err
		}
		fmt.Println(len(h), off, x.Device())
		return nil
	})
	// Output: 64 0 cuda:0
}
