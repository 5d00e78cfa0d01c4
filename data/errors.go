package data

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/wire"
)

var (
	ErrClosed    = fmt.Errorf("data: closed%.0w", os.ErrClosed)     // the Loader was closed
	ErrTruncated = errors.New("data: the file ends early")          // fewer bytes than its header promises
	ErrTrailing  = errors.New("data: bytes after the last element") // more bytes than its header promises
	// a sound file, but of something else; a sample unlike the others
	ErrShape = errors.New("data: not the shape of this data set")
	ErrPart  = errors.New("data: the stream does not heed its Part")
	ErrState = errors.New("data: not a state of this Loader")

	// ErrPlace is wrapped where workers that are processes should load samples from a device.
	ErrPlace = errors.New("data: processes do not load samples from a device")

	// ErrSample is wrapped where what a Dataset or a Stream returned is no Sample: it has no
	// fields, or one of them is nil or closed.
	ErrSample = errors.New("data: not a sample")
	// ErrEmptyBatch is wrapped where a BatchSampler asks for a batch of no samples, and where a
	// Collate makes nothing of some.
	ErrEmptyBatch = errors.New("data: an empty batch")

	// ErrTimeout is returned where a batch took longer than Options.Timeout. It is
	// context.DeadlineExceeded as well.
	ErrTimeout = fmt.Errorf("data: the batch took too long: %w", context.DeadlineExceeded)
)

// A SampleError says which sample could not be loaded, by whom, and why.
type SampleError struct {
	Index  int  // of the sample; in its part, if it is one of a Stream
	Part   Part // of the Stream
	Epoch  int
	Worker int   // ID of the worker, -1 without workers
	At     int   // where in its batch the sample belongs
	Err    error // of the Dataset; a *shoal.ProcessError is in it where the sample has ended its workers
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
	wire.RegisterError("data.ErrClosed", ErrClosed)
	wire.RegisterError("data.ErrTruncated", ErrTruncated)
	wire.RegisterError("data.ErrTrailing", ErrTrailing)
	wire.RegisterError("data.ErrShape", ErrShape)
	wire.RegisterError("data.ErrPart", ErrPart)
	wire.RegisterError("data.ErrState", ErrState)
	wire.RegisterError("data.ErrTimeout", ErrTimeout)
	wire.RegisterError("data.ErrPlace", ErrPlace)
	wire.RegisterError("data.ErrSample", ErrSample)
	wire.RegisterError("data.ErrEmptyBatch", ErrEmptyBatch)
	wire.RegisterType[*SampleError]("data.SampleError")
}
