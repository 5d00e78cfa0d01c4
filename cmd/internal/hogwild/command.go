package hogwild

import "os"

// A Command holds the flags of shoal hogwild. The defaults are the same as in the PyTorch example
// mnist_hogwild.
type Command struct {
	Data     string `long:"data" value-name:"DIR" description:"Directory with the four MNIST files, gzipped or not. Without it, digits are rendered."`
	Download bool   `long:"download" description:"Download missing files to the directory with the program shoal-download."`
	Mirror   string `long:"mirror" value-name:"URL" description:"Base URL for --download, instead of PyTorch's copy."`

	Device string `long:"device" default:"cpu" value-name:"NAME" description:"Where to train: cpu, cuda, cuda:N, or auto: a GPU if one can be used; the choice is printed."`

	Workers      int  `long:"workers" default:"2" value-name:"N" description:"Number of processes that train the network."`
	NumProcesses *int `long:"num-processes" value-name:"N" description:"Alias of --workers, as in PyTorch's example."`
	Threads      int  `long:"threads" value-name:"N" description:"Threads per worker. By default its share of the machine."`
	Shard        bool `long:"shard" description:"Split the training set among the workers. By default each worker uses all of it."`

	Epochs        *int    `long:"epochs" value-name:"N" description:"Passes over the training set. By default 10, or 1 with rendered digits."`
	BatchSize     int     `long:"batch-size" default:"64" value-name:"N" description:"Samples per step."`
	TestBatchSize int     `long:"test-batch-size" default:"1000" value-name:"N" description:"Samples per test step."`
	LR            float64 `long:"lr" default:"0.01" value-name:"X" description:"Learning rate."`
	Momentum      float64 `long:"momentum" default:"0.5" value-name:"X" description:"Momentum of SGD."`
	Seed          uint64  `long:"seed" default:"1" value-name:"N" description:"Random seed; worker r uses N+r."`
	DryRun        bool    `long:"dry-run" description:"Train one batch per worker and epoch, to check that everything runs."`

	Out string `long:"out" value-name:"FILE.safetensors" description:"File for the trained network."`

	Trace string `long:"trace" value-name:"FILE.json" description:"Write a timeline of the processes, for ui.perfetto.dev."`

	LogInterval int  `long:"log-interval" default:"10" value-name:"N" description:"Batches between two progress lines of a worker."`
	JSON        bool `long:"json" description:"Print the result as one JSON object on standard output, and everything else on standard error."`
	Verbose     bool `long:"verbose" description:"Print more detail."`
}

// Default numbers of epochs: the example's for MNIST, and a smaller one that suffices for rendered
// digits.
const (
	epochsOfMNIST  = 10
	epochsOfDigits = 1
)

// Options returns the options for [Run]. The flags must have been parsed.
func (c *Command) Options() Options {
	return Options{
		Data: c.Data, Download: c.Download, Mirror: c.Mirror, Device: c.Device,
		Workers: c.workerCount(), Threads: c.Threads, Shard: c.Shard,
		Epochs: c.epochCount(), BatchSize: c.BatchSize, TestBatchSize: c.TestBatchSize,
		LR: c.LR, Momentum: c.Momentum, Seed: c.Seed, DryRun: c.DryRun,
		Out: c.Out, Trace: c.Trace, LogInterval: c.LogInterval, JSON: c.JSON, Verbose: c.Verbose,
		Stdout: os.Stdout, Stderr: os.Stderr,
	}
}

func (c *Command) workerCount() int {
	if c.NumProcesses != nil {
		return *c.NumProcesses
	}
	return c.Workers
}

func (c *Command) epochCount() int {
	switch {
	case c.Epochs != nil:
		return *c.Epochs
	case c.Data != "":
		return epochsOfMNIST
	}
	return epochsOfDigits
}
