package data

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
)

var (
	ErrClosed    = fmt.Errorf("data: closed%.0w", os.ErrClosed)     // the Loader was closed
	ErrTruncated = errors.New("data: the file ends early")          // fewer bytes than its header promises
	ErrTrailing  = errors.New("data: bytes after the last element") // more bytes than its header promises
	// a file of another kind of data; a sample unlike the others of its batch
	ErrShape = errors.New("data: not the shape of this data set")
	ErrPart  = errors.New("data: the stream does not heed its Part")
	ErrState = errors.New("data: not a state of this Loader")

	// ErrPlace is wrapped where samples are on a device and workers are processes.
	ErrPlace = errors.New("data: processes do not load samples from a device")

	// ErrSample is wrapped where a Dataset or a Stream returned a Sample without fields, or with a
	// field that is nil or closed.
	ErrSample = errors.New("data: not a sample")
	// ErrEmptyBatch is wrapped where a BatchSampler asks for a batch of no samples, and where a
	// Collate returns an empty batch.
	ErrEmptyBatch = errors.New("data: an empty batch")

	// ErrTimeout is returned where a batch took longer than Options.Timeout. It wraps
	// context.DeadlineExceeded.
	ErrTimeout = fmt.Errorf("data: the batch took too long: %w", context.DeadlineExceeded)
)

// A SampleError says which sample could not be loaded, which worker tried, and why.
type SampleError struct {
	Index  int   // number of the sample, in its part if it is one of a Stream
	Part   Part  // part of a Stream
	Epoch  int   // number of the epoch, from 0
	Worker int   // ID of the worker, -1 without workers
	At     int   // place of the sample in its batch
	Err    error // error of the Dataset; wraps a *shoal.ProcessError if the sample killed its workers
}

// Error returns one line.
func (e *SampleError) Error() string {
	what := fmt.Sprintf("load sample %d", e.Index)
	if e.Part.Count > 0 {
		what += fmt.Sprintf(" of part %d of %d", e.Part.Index, e.Part.Count)
	}
	if e.Worker >= 0 {
		what += fmt.Sprintf(" in worker %d", e.Worker)
	}
	return fmt.Sprintf("%s: %v", what, e.Err)
}

// Unwrap returns Err.
func (e *SampleError) Unwrap() error { return e.Err }

// A loader in a worker process returns these to its starter.
func init() {
	codec.RegisterError("data.ErrClosed", ErrClosed)
	codec.RegisterError("data.ErrTruncated", ErrTruncated)
	codec.RegisterError("data.ErrTrailing", ErrTrailing)
	codec.RegisterError("data.ErrShape", ErrShape)
	codec.RegisterError("data.ErrPart", ErrPart)
	codec.RegisterError("data.ErrState", ErrState)
	codec.RegisterError("data.ErrTimeout", ErrTimeout)
	codec.RegisterError("data.ErrPlace", ErrPlace)
	codec.RegisterError("data.ErrSample", ErrSample)
	codec.RegisterError("data.ErrEmptyBatch", ErrEmptyBatch)
	codec.RegisterType[*SampleError]("data.SampleError")
}
