package data

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sentinel"
)

var (
	ErrClosed    = sentinel.New("data: closed", os.ErrClosed)       // the Loader was closed
	ErrTruncated = errors.New("data: unexpected end of file")       // fewer bytes than announced
	ErrTrailing  = errors.New("data: bytes after the last element") // more bytes than announced
	// a file of another kind of data, or a sample that differs in layout from its batch
	ErrShape = errors.New("data: shape does not match the data set")
	ErrPart  = errors.New("data: stream ignores its Part")
	ErrState = errors.New("data: state does not match this Loader")

	// ErrPlace is wrapped by the error for samples on a device with worker processes.
	ErrPlace = errors.New("data: worker processes cannot load samples from a device")

	// ErrSample is wrapped by the error for a [Dataset] or [Stream] that returned a Sample without
	// fields, or with a nil or closed field.
	ErrSample = errors.New("data: invalid sample")
	// ErrEmptyBatch is wrapped by the error for a [BatchSampler] that lists a batch without
	// samples, and for a [Collate] that returns an empty batch.
	ErrEmptyBatch = errors.New("data: empty batch")

	// ErrTimeout is returned if a batch is not ready within Options.Timeout. It wraps
	// [context.DeadlineExceeded].
	ErrTimeout = fmt.Errorf("data: batch timed out: %w", context.DeadlineExceeded)
)

// A SampleError reports a sample that could not be loaded, the worker that tried, and the cause.
type SampleError struct {
	Index  int   // index of the sample, within its part for a Stream
	Part   Part  // part of the Stream; the zero Part for a Dataset
	Epoch  int   // number of the epoch, from 0
	Worker int   // ID of the worker, -1 without workers
	At     int   // position of the sample in its batch
	Err    error // error of the Dataset; wraps a *shoal.ProcessError if the sample killed its workers
}

// Error returns a one-line description.
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

// Unwrap returns e.Err.
func (e *SampleError) Unwrap() error { return e.Err }

// The errors are registered because a Loader in a worker process may return them to its parent.
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
