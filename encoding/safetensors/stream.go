package safetensors

import (
	"io"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Options are options of [Decode]. The zero value is valid.
type Options struct {
	// MaxBytes limits the number of bytes of elements. If it is 0, the limit is the memory
	// available to the process on the machine and in its cgroup, but at least 64 MiB.
	MaxBytes int64
}

// Decode reads a file from r. It returns the tensors, which are on the heap, and the metadata. The
// caller must close the tensors. Decode does not read past the end of the last tensor.
//
// Memory is allocated as the elements arrive, so a malformed header cannot cause a large
// allocation.
//
// The error is an [*encoding.FileError] that wraps [ErrHeader], [ErrOffsets], [ErrDType],
// [ErrLimit] or the error of r. If r ends early, it also wraps [io.ErrUnexpectedEOF].
func Decode(r io.Reader, opts Options) (tensors map[string]*tensor.Tensor, meta map[string]string, err error) {
	h, _, name, err := readHeader(r, -1)
	if err != nil {
		return nil, nil, wrapError("", name, err)
	}
	if err := safefile.CheckSize(h.dataSize(), safefile.UnknownSize, opts.MaxBytes,
		"raise Options.MaxBytes if this is intended"); err != nil {
		return nil, nil, wrapError("", "", err)
	}
	tensors, err = collectTensors(h.names(), func(name string) (*tensor.Tensor, error) {
		info := h.infos[name]
		t, err := foreignTensors.ReadFrom(r, int(info.end-info.begin))
		if err != nil {
			return nil, wrapError("", name, truncatedError(err, ErrOffsets))
		}
		defer t.Close()
		numpy.Clean(info.DType.String(), tensor.Bytes(t))
		return t.Storage().View(info.DType, info.Shape, nil, 0)
	})
	if err != nil {
		return nil, nil, err
	}
	return tensors, h.meta, nil
}

// dataSize returns the number of bytes of elements that follow the header.
func (h header) dataSize() (n int64) {
	for _, info := range h.infos {
		n = max(n, int64(info.end))
	}
	return n
}
