package safetensors

import (
	"io"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/room"
	"github.com/shoal-mp/shoal/tensor"
)

// Decode reads what Encode or Save has written: the tensors, on the heap, and what was saved beside
// them. It reads up to the end of the last tensor and no further, so that r may have more.
//
// maxBytes is how many bytes of elements r may ask for. 0 stands for what this process may take
// without somebody being killed; up to 64 MiB are always given.
//
// The error is an [*encoding.FileError]. It wraps ErrHeader, ErrOffsets, ErrDType or ErrLimit, also
// io.ErrUnexpectedEOF where r ends early, or it is what r says.
func Decode(r io.Reader, maxBytes int64) (tensors map[string]*tensor.Tensor, meta map[string]string, err error) {
	h, _, name, err := readHeader(r, -1)
	if err != nil {
		return nil, nil, about("", name, err)
	}
	if err := room.Check(h.bytes(), room.Unknown, maxBytes, "raise maxBytes if that is meant"); err != nil {
		return nil, nil, about("", "", err)
	}
	tensors, err = each(h.names(), func(name string) (*tensor.Tensor, error) {
		info := h.infos[name]
		t := tensor.Empty(info.DType, info.Shape...)
		if err := readFull(r, tensor.Bytes(t), ErrOffsets); err != nil {
			return nil, about("", name, err)
		}
		numpy.Clean(info.DType.String(), tensor.Bytes(t))
		return t, nil
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
