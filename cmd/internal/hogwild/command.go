package hogwild

import "os"

// A Command holds the flags of shoal hogwild. The defaults are the same as in the PyTorch example
// mnist_hogwild.
type Command struct {
	Data     string `long:"data" value-name:"DIR" description:"Folder with the four MNIST files, gzipped or not. Without it, digits are rendered."`
	Download bool   `long:"download" description:"Fetch the files that the folder lacks, by the program shoal-download."`
	Mirror   string `long:"mirror" value-name:"URL" description:"Where --download fetches them, instead of PyTorch's own copy."`

	Device string `long:"device" default:"cpu" value-name:"NAME" description:"Where to train: cpu, cuda, cuda:N, or auto, which is a GPU if there is one, and says what it has chosen."`

	Workers      int  `long:"workers" default:"2" value-name:"N" description:"Processes that train the one network."`
	NumProcesses *int `long:"num-processes" value-name:"N" description:"The original's name of --workers."`
	Threads      int  `long:"threads" value-name:"N" description:"Threads of each worker; its share of the machine unless given."`
	Shard        bool `long:"shard" description:"Split the training set among the workers, instead of each passing over all of it."`

	Epochs        *int    `long:"epochs" value-name:"N" description:"Passes over the training set: 10, or 1 over rendered digits."`
	BatchSize     int     `long:"batch-size" default:"64" value-name:"N" description:"Samples of a step."`
	TestBatchSize int     `long:"test-batch-size" default:"1000" value-name:"N" description:"Samples tested at a time."`
	LR            float64 `long:"lr" default:"0.01" value-name:"X" description:"Learning rate."`
	Momentum      float64 `long:"momentum" default:"0.5" value-name:"X" description:"Momentum of SGD."`
	Seed          uint64  `long:"seed" default:"1" value-name:"N" description:"Worker r takes this plus r."`
	DryRun        bool    `long:"dry-run" description:"One batch per worker and epoch, to see that all runs."`

	Out string `long:"out" value-name:"FILE.safetensors" description:"Where to write the trained network."`

	Trace string `long:"trace" value-name:"FILE.json" description:"Write what the processes do, and when, for ui.perfetto.dev."`

	LogInterval int  `long:"log-interval" default:"10" value-name:"N" description:"Batches between two reports of a worker."`
	JSON        bool `long:"json" description:"The result as one JSON object on standard output; all else goes to standard error."`
	Verbose     bool `long:"verbose" description:"Say more."`
}

// Default numbers of epochs: the example's for MNIST, and a smaller one that suffices for rendered
// digits.
const (
	epochsOfMNIST  = 10
	epochsOfDigits = 1
)

// Options returns the options for [Run].
func (c *Command) Options() Options {
	return Options{
		Data: c.Data, Download: c.Download, Mirror: c.Mirror, Device: c.Device,
		Workers: c.workers(), Threads: c.Threads, Shard: c.Shard,
		Epochs: c.epochs(), BatchSize: c.BatchSize, TestBatchSize: c.TestBatchSize,
		LR: c.LR, Momentum: c.Momentum, Seed: c.Seed, DryRun: c.DryRun,
		Out: c.Out, Trace: c.Trace, LogInterval: c.LogInterval, JSON: c.JSON, Verbose: c.Verbose,
		Stdout: os.Stdout, Stderr: os.Stderr,
	}
}

func (c *Command) workers() int {
	if c.NumProcesses != nil {
		return *c.NumProcesses
	}
	return c.Workers
}

func (c *Command) epochs() int {
	switch {
	case c.Epochs != nil:
		return *c.Epochs
	case c.Data != "":
		return epochsOfMNIST
	}
	return epochsOfDigits
}
