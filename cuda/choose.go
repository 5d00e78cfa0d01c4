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

// Available returns nil if this process can use a device, and otherwise an error with the reason,
// which wraps [ErrUnavailable].
func Available() error {
	_, err := open()
	return err
}

// Count returns the number of devices that are visible to this process, or 0 if CUDA is not
// available. CUDA_VISIBLE_DEVICES limits the visible devices.
func Count() int {
	s, err := open()
	if err != nil {
		return 0
	}
	return len(s.devices)
}

// Get returns the visible device with the given number, counted from 0. The error wraps
// [ErrUnavailable] if CUDA is not available, and [ErrDevice] if there is no such device.
func Get(ordinal int) (*Device, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(s.devices) {
		return nil, fmt.Errorf("%w: cuda:%d, want less than %d", ErrDevice, ordinal, len(s.devices))
	}
	return s.devices[ordinal], nil
}

// SetDevice sets this process's current device, which the name "cuda" without a number refers to,
// like torch.cuda.set_device. The default is cuda:0. The error wraps [ErrUnavailable] or
// [ErrDevice].
func SetDevice(ordinal int) error {
	if _, err := Get(ordinal); err != nil {
		return err
	}
	process.Lock()
	defer process.Unlock()
	process.chosen = ordinal
	return nil
}

// Current returns the current device, as set by [SetDevice], or cuda:0 by default. The error wraps
// [ErrUnavailable].
func Current() (*Device, error) {
	process.Lock()
	n := process.chosen
	process.Unlock()
	return Get(n)
}

// isAbsent reports whether the error of [Available] means that this machine has no device or that
// CUDA_VISIBLE_DEVICES hides all of them on purpose. It returns false if devices exist but cannot
// be used, for example because of an incompatible driver or a CUDA_VISIBLE_DEVICES that matches no
// device. Callers must not fall back to the host then: the program would silently compute on the
// CPU of a machine with a GPU.
func isAbsent(why error) bool {
	if errors.Is(why, dl.ErrNotLoaded) {
		return true
	}
	if !errors.Is(why, cudriver.ErrorNoDevice) {
		return false
	}
	visible, limited := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	return !limited || visible == "" || strings.HasPrefix(visible, "-1")
}

// parse returns the device with the given name: "cuda:1", "cuda" for the current device, or "auto"
// for the current device if there is one, and otherwise nil, the host. The error wraps [ErrDevice]
// or [ErrUnavailable].
func parse(text string) (device.Device, error) {
	kind, number, numbered := strings.Cut(text, ":")
	switch {
	case text == "auto" && isAbsent(Available()):
		return nil, nil
	case text == "cuda", text == "auto":
		return asDevice(Current())
	case kind != "cuda" || !numbered:
		return nil, fmt.Errorf("%w: got %q, want cpu, cuda, cuda:N or auto", ErrDevice, text)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || number != strconv.Itoa(n) {
		return nil, fmt.Errorf("%w: got %q, want cuda:N with a number", ErrDevice, text)
	}
	return asDevice(Get(n))
}

// asDevice converts d to an interface value. It avoids a non-nil interface that holds a nil
// *Device.
func asDevice(d *Device, err error) (device.Device, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// ForRank returns the device for a worker, assigned round-robin by its rank, counted from 0. It
// returns nil, the host, if this machine has no device. The error wraps [ErrUnavailable] if devices
// exist but cannot be used, for example because CUDA_VISIBLE_DEVICES matches none of them, and
// [ErrDevice] if rank is negative.
func ForRank(rank int) (tensor.Device, error) {
	s, err := open()
	switch {
	case rank < 0:
		return nil, fmt.Errorf("%w: got rank %d, want at least 0", ErrDevice, rank)
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.devices[rank%len(s.devices)], nil
}
