package cudriver

import (
	"errors"
	"os"
	"strings"
)

// SimulateKey is the environment variable that names simulated devices, by the paths of their files
// with commas between. Children inherit it.
const SimulateKey = "SHOAL_CUDA_SIMULATE"

// ErrNoSimulator is wrapped where simulated devices are named and the program has no simulator.
var ErrNoSimulator = errors.New(SimulateKey + " names simulated devices, and this program has no simulator:" +
	" unset it, or build the program with -tags cudasim")

// simulator returns a driver over simulated devices; nil where nothing has registered one.
var simulator func(paths []string) Driver

// RegisterSimulator says how drivers over simulated devices are made. Package sim calls it when it
// is initialized: a program that imports it can simulate, and no other one carries an interpreter.
func RegisterSimulator(open func(paths []string) Driver) { simulator = open }

// Simulated returns the files of the simulated devices that the environment names, and whether it
// names some.
func Simulated() (paths []string, ok bool) {
	text := os.Getenv(SimulateKey)
	return strings.Split(text, ","), text != ""
}

// Open returns the driver of the simulated devices that the environment names, or else of this
// machine, as Load does. The error wraps ErrNoSimulator.
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
