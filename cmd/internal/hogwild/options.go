package hogwild

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/tensor"
)

// Options configure a run. All numbers must be set; the defaults are in [Command].
type Options struct {
	Data     string // directory with the MNIST files; if empty, digits are rendered
	Download bool   // fetch the files that Data lacks
	Mirror   string // download URL; empty means the default one

	// Device is cpu (or empty), a device name for [tensor.ParseDevice] such as cuda:1, or auto,
	// which means cuda if it is available.
	Device string
	NoGPU  error // why auto must use the CPU, if known

	Workers int
	Threads int  // for each worker; 0 means an equal share of the CPUs
	Shard   bool // split the training set among the workers

	Epochs        int
	BatchSize     int
	TestBatchSize int
	LR, Momentum  float64
	Seed          uint64 // worker r uses Seed + r
	DryRun        bool   // one batch per worker and epoch

	Out string // safetensors file for the trained network, or empty

	Trace string // output file of package trace, or empty

	LogInterval    int       // batches between two reports of a worker
	JSON           bool      // print one JSON object on Stdout and all else on Stderr
	Verbose        bool      // print more
	Stdout, Stderr io.Writer // progress bars go to Stderr if it is a terminal
}

// maxWorkers is slightly below the number of participants that a domain supports.
const maxWorkers = 250

// check validates the options. The error names the flag and wraps [ErrOption].
func (o *Options) check() error {
	for _, n := range []struct {
		flag            string
		value, min, max int
	}{
		{"workers", o.Workers, 1, maxWorkers},
		{"threads", o.Threads, 0, math.MaxInt32},
		{"epochs", o.Epochs, 1, math.MaxInt32},
		{"batch-size", o.BatchSize, 1, math.MaxInt32},
		{"test-batch-size", o.TestBatchSize, 1, math.MaxInt32},
		{"log-interval", o.LogInterval, 1, math.MaxInt32},
	} {
		switch {
		case n.value < n.min:
			return fmt.Errorf("%w: --%s %d: want at least %d", ErrOption, n.flag, n.value, n.min)
		case n.value > n.max:
			return fmt.Errorf("%w: --%s %d: want at most %d", ErrOption, n.flag, n.value, n.max)
		}
	}
	switch {
	case !(o.LR > 0) || math.IsInf(o.LR, 0):
		return fmt.Errorf("%w: --lr %v: want a positive number", ErrOption, o.LR)
	case !(o.Momentum >= 0 && o.Momentum < 1):
		return fmt.Errorf("%w: --momentum %v: want at least 0 and less than 1", ErrOption, o.Momentum)
	case o.Download && o.Data == "":
		return fmt.Errorf("%w: --download requires --data DIR, the directory for the files", ErrOption)
	case o.Out != "" && !strings.HasSuffix(o.Out, ".safetensors"):
		return fmt.Errorf("%w: --out %s: want a name that ends in .safetensors; use shoal convert for other formats",
			ErrOption, o.Out)
	case o.Mirror != "" && !o.Download:
		return fmt.Errorf("%w: --mirror requires --download", ErrOption)
	}
	if _, err := o.device(); o.Device != "auto" {
		return err
	}
	return nil
}

// OnGPU reports whether device names a GPU.
func OnGPU(device string) bool { return device == "cuda" || strings.HasPrefix(device, "cuda:") }

// device returns the training device, or nil for the host. The error wraps [ErrOption], except for
// auto, where it is the reason why no GPU can be used.
func (o *Options) device() (tensor.Device, error) {
	switch {
	case o.Device == "":
		return nil, nil
	case o.Device == "auto" && o.NoGPU != nil:
		return nil, o.NoGPU
	case o.Device == "auto":
		return tensor.ParseDevice("cuda")
	}
	dev, err := tensor.ParseDevice(o.Device)
	if err != nil {
		return nil, fmt.Errorf(
			"%w: --device %s: %w; use --device cpu for the CPUs, or auto for a GPU if one can be used",
			ErrOption, o.Device, err)
	}
	return dev, nil
}

// threadBudget returns the thread budget of each worker.
func (o *Options) threadBudget() int {
	return cmp.Or(o.Threads, max(1, shoal.Threads()/o.Workers))
}

// log returns the writer for everything other than the result.
func (o *Options) log() io.Writer {
	if o.JSON {
		return o.Stderr
	}
	return o.Stdout
}

// printNote prints a message if Verbose is set.
func (o *Options) printNote(format string, args ...any) {
	if o.Verbose {
		fmt.Fprintf(o.log(), format+"\n", args...)
	}
}
