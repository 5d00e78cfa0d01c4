package safetensors

import (
	"io"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Decode reads one file from r. It returns the tensors, on the heap, and the metadata that was
// saved beside them. The caller closes the tensors. Decode reads r up to the end of the last tensor
// and no further.
//
// maxBytes is how many bytes of elements the file may have. 0 stands for the memory that the
// machine and the cgroup have left for this process, and for 64 MiB where they have less. The
// memory for them grows as they come, so a header that lies takes none.
//
// The error is an [*encoding.FileError]. It wraps ErrHeader, ErrOffsets, ErrDType, ErrLimit or the
// error of r. Where r ends early it wraps io.ErrUnexpectedEOF as well.
func Decode(r io.Reader, maxBytes int64) (tensors map[string]*tensor.Tensor, meta map[string]string, err error) {
	h, _, name, err := readHeader(r, -1)
	if err != nil {
		return nil, nil, about("", name, err)
	}
	if err := safefile.CheckSize(h.bytes(), safefile.UnknownSize, maxBytes, "raise maxBytes if that is meant"); err != nil {
		return nil, nil, about("", "", err)
	}
	tensors, err = each(h.names(), func(name string) (*tensor.Tensor, error) {
		info := h.infos[name]
		t, err := foreignTensors.ReadFrom(r, int(info.end-info.begin))
		if err != nil {
			return nil, about("", name, cutShort(err, ErrOffsets))
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

// bytes is how many bytes of elements follow the header.
func (h header) bytes() (n int64) {
	for _, info := range h.infos {
		n = max(n, int64(info.end))
	}
	return n
}
