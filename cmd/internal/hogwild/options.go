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

// Options say how to train. Every number must be given; the defaults are the command's.
type Options struct {
	Data     string // folder of the four MNIST files; empty means that digits are rendered
	Download bool   // fetches the files that Data lacks
	Mirror   string // where from; empty means the usual place

	// where to train: cpu, which empty means too; a device that tensor.ParseDevice finds, such as
	// cuda:1; or auto, cuda if there is one
	Device string
	NoGPU  error // why auto is the CPU, where the caller knows it

	Workers int
	Threads int  // of each worker; 0 means its share of the machine
	Shard   bool // splits the training set among the workers; otherwise each passes over all of it

	Epochs        int
	BatchSize     int
	TestBatchSize int
	LR, Momentum  float64
	Seed          uint64 // worker r uses Seed + r
	DryRun        bool   // one batch per worker and epoch

	Out string // safetensors file for the trained network; empty means none

	Trace string // file of package trace; empty means none

	LogInterval    int       // batches between two reports of a worker
	JSON           bool      // the result is one JSON object on Stdout, and all else goes to Stderr
	Verbose        bool      // says more
	Stdout, Stderr io.Writer // bars are drawn on Stderr if that is a terminal
}

// maxWorkers is a little less than a domain has room for.
const maxWorkers = 250

// check returns an error that names the flag.
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
			return fmt.Errorf("%w: --%s %d: at least %d is needed", ErrOption, n.flag, n.value, n.min)
		case n.value > n.max:
			return fmt.Errorf("%w: --%s %d: at most %d are possible", ErrOption, n.flag, n.value, n.max)
		}
	}
	switch {
	case !(o.LR > 0) || math.IsInf(o.LR, 0):
		return fmt.Errorf("%w: --lr %v: a learning rate is a positive number", ErrOption, o.LR)
	case !(o.Momentum >= 0 && o.Momentum < 1):
		return fmt.Errorf("%w: --momentum %v: it is at least 0 and less than 1", ErrOption, o.Momentum)
	case o.Download && o.Data == "":
		return fmt.Errorf("%w: --download needs --data DIR, the folder to put the files into", ErrOption)
	case o.Out != "" && !strings.HasSuffix(o.Out, ".safetensors"):
		return fmt.Errorf("%w: --out %s: the name ends in .safetensors; shoal convert makes other formats of it", ErrOption, o.Out)
	case o.Mirror != "" && !o.Download:
		return fmt.Errorf("%w: --mirror says where --download fetches from, and is nothing without it", ErrOption)
	}
	if _, err := o.device(); o.Device != "auto" {
		return err
	}
	return nil
}

// OnGPU reports whether a name is that of a GPU.
func OnGPU(device string) bool { return device == "cuda" || strings.HasPrefix(device, "cuda:") }

// device returns where to train, nil for the host. The error wraps ErrOption; that of auto says why
// there is no GPU.
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
			"%w: --device %s: %w; --device cpu trains on the processors, auto on a GPU where there is one",
			ErrOption, o.Device, err)
	}
	return dev, nil
}

// threads is the budget of one worker.
func (o *Options) threads() int {
	return cmp.Or(o.Threads, max(1, shoal.Threads()/o.Workers))
}

// log is where everything goes that is not the result.
func (o *Options) log() io.Writer {
	if o.JSON {
		return o.Stderr
	}
	return o.Stdout
}

// note says something that only --verbose wants to hear.
func (o *Options) note(format string, args ...any) {
	if o.Verbose {
		fmt.Fprintf(o.log(), format+"\n", args...)
	}
}
