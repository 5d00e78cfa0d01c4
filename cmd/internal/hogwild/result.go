package hogwild

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// A Result summarizes a run. Its JSON encoding is a single line.
type Result struct {
	Dataset   string `json:"dataset"` // "mnist" or "digits"
	TrainSize int    `json:"train_size"`
	TestSize  int    `json:"test_size"`

	Device           string  `json:"device"`
	Workers          int     `json:"workers"`
	ThreadsPerWorker int     `json:"threads_per_worker"`
	Epochs           int     `json:"epochs"`
	BatchSize        int     `json:"batch_size"`
	LR               float64 `json:"lr"`
	Momentum         float64 `json:"momentum"`
	Seed             uint64  `json:"seed"`
	Shard            bool    `json:"shard"`
	DryRun           bool    `json:"dry_run"`

	Samples          int     `json:"samples"` // trained on by all workers
	Seconds          float64 `json:"seconds"` // from the first start to the last exit of a worker
	SamplesPerSecond float64 `json:"samples_per_s"`

	Tested   bool    `json:"tested"` // false after an interrupt, when the next three are 0
	Correct  int     `json:"correct"`
	Accuracy float64 `json:"accuracy"`
	TestLoss Number  `json:"test_loss"`

	Model   string `json:"model,omitempty"`   // file with the trained network
	Failure string `json:"failure,omitempty"` // why the result is incomplete

	BytesShared  int64   `json:"bytes_shared"`             // network and data set
	BytesMovedIn int64   `json:"bytes_moved_in"`           // copied to shared memory once
	BytesCopied  int64   `json:"bytes_copied"`             // copied between processes since
	PeakBytes    []int64 `json:"peak_bytes_per_worker"`    // resident, shared memory included
	PrivateBytes []int64 `json:"private_bytes_per_worker"` // private part at the last report

	// blocks still in use after all workers had exited and the root process had closed its objects
	LeakedBlocks int   `json:"leaked_blocks"`
	LeakedBytes  int64 `json:"leaked_bytes"`
	Allocated    int64 `json:"blocks_allocated_total"`
	Reaped       int   `json:"workers_reaped"` // died holding shared memory, which was reclaimed
}

// A Number is encoded as null in JSON if it is NaN or infinite, which happens if training diverges.
type Number float64

// MarshalJSON encodes the number or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if x := float64(n); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return json.Marshal(x)
	}
	return []byte("null"), nil
}

func newResult(o *Options, dev tensor.Device) *Result {
	return &Result{
		Device: tensor.Place{Device: dev}.String(), Workers: o.Workers, ThreadsPerWorker: o.threadBudget(),
		Epochs: o.Epochs, BatchSize: o.BatchSize,
		LR: o.LR, Momentum: o.Momentum, Seed: o.Seed, Shard: o.Shard, DryRun: o.DryRun,
	}
}

// storeReports stores the figures reported by the workers. d is the duration of the training.
func (r *Result) storeReports(j *journal, d time.Duration) {
	r.Samples, r.Seconds = j.totalSamples(), d.Seconds()
	r.SamplesPerSecond = float64(r.Samples) / r.Seconds
	r.PeakBytes = j.columnOf(func(r report) int64 { return r.Peak })
	r.PrivateBytes = j.columnOf(func(r report) int64 { return r.Alone })
}

// storeStats stores the domain's final counters. Blocks that are still in use have been leaked,
// so it must be called after all objects were closed.
func (r *Result) storeStats(s arena.Stats) {
	r.LeakedBlocks, r.LeakedBytes = s.Blocks, s.Bytes
	r.Allocated, r.Reaped = s.Allocs, s.Reaped
}

// write prints the result as JSON or as text.
func (r *Result) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	return r.writeText(w)
}

func (r *Result) writeText(w io.Writer) error {
	p := &printer{w: w}
	p.printLine("")
	p.printLine("trained    %d samples of %s on %s by %s of %s in %.1f s: %.0f samples/s",
		r.Samples, r.Dataset, r.Device, words.Count(r.Workers, "worker"),
		words.Count(r.ThreadsPerWorker, "thread"), r.Seconds, r.SamplesPerSecond)
	p.printLine("shared     %s in one copy; %s copied into it once, %s copied between processes since",
		words.Bytes(r.BytesShared), words.Bytes(r.BytesMovedIn), words.Bytes(r.BytesCopied))
	if len(r.PeakBytes) > 0 {
		p.printLine("peak       %s per worker at most, %s of it private", words.Bytes(slices.Max(r.PeakBytes)),
			words.Bytes(slices.Max(r.PrivateBytes)))
	}
	p.printLine("left over  %d of %d blocks, %s", r.LeakedBlocks, r.Allocated, words.Bytes(r.LeakedBytes))
	if r.Reaped > 0 {
		p.printLine("died       %s; their blocks were reclaimed", words.Count(r.Reaped, "worker"))
	}
	if r.Model != "" {
		p.printLine("saved      %s", r.Model)
	}
	if r.Tested {
		p.printLine("Test set: Average loss: %.4f, Accuracy: %d/%d (%.2f%%)", r.TestLoss, r.Correct, r.TestSize,
			100*r.Accuracy)
	}
	return p.err
}

// A printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printLine(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
