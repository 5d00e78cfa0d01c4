package cudriver

import (
	"errors"
	"os"
	"strings"
)

// SimulateKey is the environment variable that selects simulated devices: a comma-separated list of
// paths of device files. Child processes inherit it.
const SimulateKey = "SHOAL_CUDA_SIMULATE"

// ErrNoSimulator is wrapped by errors if the environment selects simulated devices but the program
// does not contain the simulator.
var ErrNoSimulator = errors.New(SimulateKey + " names simulated devices, and this program has no simulator:" +
	" unset it, or build the program with -tags cudasim")

// simulator opens a driver for simulated devices. It is nil if no simulator is registered.
var simulator func(paths []string) Driver

// RegisterSimulator sets the function that opens a driver for simulated devices. Package sim
// calls it during initialization, so only programs that import package sim contain the
// simulator and its interpreter. It must not be called concurrently with [Open].
func RegisterSimulator(open func(paths []string) Driver) { simulator = open }

// Simulated returns the paths of the simulated devices that the environment selects with
// [SimulateKey]. ok is false if it selects none; paths has no meaning then.
func Simulated() (paths []string, ok bool) {
	text := os.Getenv(SimulateKey)
	return strings.Split(text, ","), text != ""
}

// Open returns a driver for the simulated devices that the environment selects, or otherwise
// the machine's driver, as [Load] does. It does not initialize the driver. The error wraps
// [ErrNoSimulator] if the program does not contain the simulator.
func Open() (Driver, error) {
	paths, ok := Simulated()
	switch {
	case !ok:
		return Load()
	case simulator == nil:
		return nil, ErrNoSimulator
	}
	return simulator(paths), nil
}
