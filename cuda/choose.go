package cuda

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/tensor"
)

// Available reports whether this process can use a device.
func Available() bool { return Why() == nil }

// Why returns why there is no CUDA, or nil if there is. The error wraps ErrUnavailable.
func Why() error {
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

// Get returns a device by its place. The error wraps ErrUnavailable or ErrDevice.
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

// SetDevice chooses what "cuda" without a number means in this process; at first it is cuda:0.
func SetDevice(ordinal int) error {
	if _, err := Get(ordinal); err != nil {
		return err
	}
	process.Lock()
	defer process.Unlock()
	process.chosen = ordinal
	return nil
}

// Current returns the device that SetDevice chose.
func Current() (*Device, error) {
	process.Lock()
	n := process.chosen
	process.Unlock()
	return Get(n)
}

// ParseDevice returns the device that a text names: "cuda:1"; "cuda", the current one; "cpu", which
// is nil; or "auto", the current one if there is one, and nil otherwise. The error wraps ErrDevice
// or ErrUnavailable.
func ParseDevice(text string) (tensor.Device, error) {
	kind, number, numbered := strings.Cut(text, ":")
	switch {
	case text == "cpu", text == "cpu:0", text == "auto" && !Available():
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
func some(d *Device, err error) (tensor.Device, error) {
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
