package cuda

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// Available returns nil if this process can use a device, and otherwise why not. The error wraps
// ErrUnavailable.
func Available() error {
	_, err := open()
	return err
}

// Count returns how many devices this process sees, which CUDA_VISIBLE_DEVICES may limit; 0 without
// CUDA.
func Count() int {
	s, err := open()
	if err != nil {
		return 0
	}
	return len(s.devices)
}

// Get returns a device by its number among those that this process sees, from 0 on. The error wraps
// ErrUnavailable or ErrDevice.
func Get(ordinal int) (*Device, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(s.devices) {
		return nil, fmt.Errorf("%w: cuda:%d of %d", ErrDevice, ordinal, len(s.devices))
	}
	return s.devices[ordinal], nil
}

// SetDevice chooses by its number what "cuda" without one means in this process, as
// torch.cuda.set_device does; at first it is cuda:0. The error wraps ErrUnavailable or ErrDevice.
func SetDevice(ordinal int) error {
	if _, err := Get(ordinal); err != nil {
		return err
	}
	process.Lock()
	defer process.Unlock()
	process.chosen = ordinal
	return nil
}

// Current returns the device that SetDevice chose, cuda:0 at first. The error wraps ErrUnavailable.
func Current() (*Device, error) {
	process.Lock()
	n := process.chosen
	process.Unlock()
	return Get(n)
}

// parse returns the device that a text names: "cuda:1"; "cuda", the current one; or "auto", the
// current one if there is one, and the host, nil, otherwise. The error wraps ErrDevice or
// ErrUnavailable.
func parse(text string) (device.Device, error) {
	kind, number, numbered := strings.Cut(text, ":")
	switch {
	case text == "auto" && Available() != nil:
		return nil, nil
	case text == "cuda", text == "auto":
		return some(Current())
	case kind != "cuda" || !numbered:
		return nil, fmt.Errorf("%w: %q, where cpu, cuda, cuda:N or auto belongs", ErrDevice, text)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || number != strconv.Itoa(n) {
		return nil, fmt.Errorf("%w: %q has no number", ErrDevice, text)
	}
	return some(Get(n))
}

// some makes an interface of a device, and nil of none.
func some(d *Device, err error) (device.Device, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// ForRank returns the device of a worker: the devices take turns, and where there is none it is the
// host.
func ForRank(rank int) tensor.Device {
	n := Count()
	if n == 0 || rank < 0 {
		return nil
	}
	d, err := Get(rank % n)
	if err != nil {
		return nil
	}
	return d
}
