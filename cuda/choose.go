package cuda

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/tensor"
)

// Available returns nil if this process can use a device, and otherwise why not. The error wraps
// ErrUnavailable.
func Available() error {
	_, err := open()
	return err
}

// Count returns how many devices this process sees, which CUDA_VISIBLE_DEVICES may limit, and 0
// without CUDA.
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

// SetDevice chooses, by its number, the device that "cuda" without a number means in this process,
// as torch.cuda.set_device does; at first it is cuda:0. The error wraps ErrUnavailable or
// ErrDevice.
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

// absent reports whether there is no device because this machine has none, or because
// CUDA_VISIBLE_DEVICES hides all of them on purpose. A machine whose devices cannot be used is
// another matter, as with a driver that does not fit or a list that names none of them: a program
// that takes the host there computes for days where its user paid for a device.
func absent(why error) bool {
	if errors.Is(why, dl.ErrNotLoaded) {
		return true
	}
	if !errors.Is(why, cudriver.ErrorNoDevice) {
		return false
	}
	visible, limited := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	return !limited || visible == "" || strings.HasPrefix(visible, "-1")
}

// parse returns the device that a text names: "cuda:1"; "cuda", the current one; or "auto", the
// current one, and the host, nil, where there is no device at all. The error wraps ErrDevice or
// ErrUnavailable.
func parse(text string) (device.Device, error) {
	kind, number, numbered := strings.Cut(text, ":")
	switch {
	case text == "auto" && absent(Available()):
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

// ForRank returns a device for a worker by its rank, from 0 on: the devices take turns. It returns
// nil, the host, where there is no device at all. The error wraps ErrUnavailable where there are
// some and none can be used, such as by a CUDA_VISIBLE_DEVICES that names none of them, or
// ErrDevice for a negative rank.
func ForRank(rank int) (tensor.Device, error) {
	s, err := open()
	switch {
	case rank < 0:
		return nil, fmt.Errorf("%w: the one for rank %d; ranks begin at 0", ErrDevice, rank)
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.devices[rank%len(s.devices)], nil
}
