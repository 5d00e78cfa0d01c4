package cudriver

import (
	"errors"
	"fmt"
	"os"
)

// Devices initializes the driver and returns the devices that are visible to this process. The
// error wraps [ErrorNoDevice] if there is none, so the result is never empty.
func Devices(driver Driver) ([]Device, error) {
	n := 0
	err := driver.Init()
	if err == nil {
		n, err = driver.DeviceCount()
	}
	if err == nil && n == 0 {
		err = ErrorNoDevice
	}
	if visible, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok && errors.Is(err, ErrorNoDevice) {
		err = fmt.Errorf("%w, and CUDA_VISIBLE_DEVICES is %q", err, visible)
	}
	if err != nil {
		return nil, err
	}
	all := make([]Device, n)
	for i := range all {
		if all[i], err = driver.DeviceGet(i); err != nil {
			return nil, err
		}
	}
	return all, nil
}
