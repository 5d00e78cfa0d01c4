package tensor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

func TestCatch_ReturnsWhatADeviceRefuses(t *testing.T) {
	dev := devicetest.New("test:0")
	x := devicetest.On(t, dev, tensor.Ones(tensor.Float32, 4))
	full := errors.New("out of memory")
	for name, f := range map[string]func(){
		"an operation":  func() { tensor.Add(x, x) },
		"a new tensor":  func() { x.NewEmpty(tensor.Float32, 8) },
		"a conversion":  func() { x.To(tensor.Float64) },
		"what is there": func() { x.AddScalarInPlace(1) },
	} {
		t.Run(name, func(t *testing.T) {
			dev.Fail(full)
			err := tensor.Catch(f)
			dev.Fail(nil)
			if !errors.Is(err, full) {
				t.Errorf("%v", err)
			}
			if err := tensor.Catch(f); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	if err := tensor.Catch(func() { tensor.Add(x, tensor.Ones(tensor.Float32, 4)) }); !errors.Is(err,
		tensor.ErrDevices) {
		t.Errorf("operands on two devices: %v", err)
	}
}

func ExampleCatch() {
	full := fmt.Errorf("device out of memory")
	err := tensor.Catch(func() { panic(full) }) // as an operation on a device does
	fmt.Println(err)
	// Output: device out of memory
}
