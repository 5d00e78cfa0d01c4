package safetensors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// foreignTensors creates tensors backed by mapped files.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// shard is an open file with a validated header. openShard and [NewFile] make it. Its methods
// may be called from several goroutines, except readHeader; close must be the last call.
type shard struct {
	r      io.ReaderAt
	f      *os.File // same as r if opened by Open, nil otherwise
	path   string
	header header
	body   int64 // offset of the elements

	mu     sync.Mutex
	mapped foreign.Map[*tensor.Tensor] // owns f if not nil; created by the first Map
}

func openShard(path string) (*shard, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open tensors: %w", err)
	}
	s := &shard{r: f, f: f, path: path}
	info, err := f.Stat()
	if err == nil {
		err = s.readHeader(info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// readHeader reads and validates the header of a file of size bytes, and sets s.header and
// s.body. The error is an [*encoding.FileError].
func (s *shard) readHeader(size int64) error {
	h, n, name, err := readHeader(io.NewSectionReader(s.r, 0, size), size)
	if err != nil {
		return wrapError(s.path, name, err)
	}
	s.header, s.body = h, n
	return nil
}

// read reads the tensor with the given name, which must be in the shard, to the heap. The caller
// must close it. The error is an [*encoding.FileError].
func (s *shard) read(name string) (*tensor.Tensor, error) {
	info := s.header.infos[name]
	t := tensor.Empty(info.DType, info.Shape...)
	if err := s.readAt(t, s.body+int64(info.begin)); err != nil {
		return nil, wrapError(s.path, name, err)
	}
	numpy.Clean(info.DType.String(), tensor.Bytes(t))
	return t, nil
}

// readAt reads the bytes at the offset at into t, as many as t has. The error wraps [ErrOffsets]
// if a reader that is no file ends before.
func (s *shard) readAt(t *tensor.Tensor, at int64) error {
	if s.f != nil {
		return foreignTensors.ReadFileAt(t, s.f, at)
	}
	b := tensor.Bytes(t)
	return readFull(io.NewSectionReader(s.r, at, int64(len(b))), b, ErrOffsets)
}

// isMappable reports whether the tensor with the given name can be mapped: the shard must be a
// file, and the tensor must be aligned.
func (s *shard) isMappable(name string) bool {
	info := s.header.infos[name]
	return s.f != nil && (s.body+int64(info.begin))%int64(info.DType.Size()) == 0
}

// mapTensor maps the tensor with the given name, which must be mappable. The caller must close
// it. The error is an [*encoding.FileError].
func (s *shard) mapTensor(name string) (t *tensor.Tensor, err error) {
	m, err := s.mapFile()
	if err != nil {
		return nil, wrapError(s.path, name, err)
	}
	info := s.header.infos[name]
	guarded := tensor.Catch(func() { t, err = mappedView(m, s.body+int64(info.begin), info) })
	if err = errors.Join(err, guarded); err != nil {
		return nil, wrapError(s.path, name, err)
	}
	return t, nil
}

// mappedView returns a tensor of the given dtype and shape over the mapped bytes at the offset
// at, which must be aligned. The caller must close it.
func mappedView(m foreign.Map[*tensor.Tensor], at int64, info Info) (*tensor.Tensor, error) {
	hold, err := m.Storage(at, int64(info.end-info.begin))
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	numpy.Clean(info.DType.String(), tensor.Bytes(hold))
	return hold.Storage().View(info.DType, info.Shape, nil, 0)
}

// tensorSize returns the size in bytes of a tensor, which must be in the shard.
func (s *shard) tensorSize(name string) int64 {
	info := s.header.infos[name]
	return int64(info.end - info.begin)
}

func (s *shard) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mapped != nil:
		return s.mapped.Close()
	case s.f != nil:
		return s.f.Close()
	}
	return nil
}

// mapFile maps the file on first use. The shard owns the mapping. s.f must not be nil.
func (s *shard) mapFile() (m foreign.Map[*tensor.Tensor], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mapped == nil {
		s.mapped, err = foreignTensors.MapFile(s.f)
	}
	return s.mapped, err
}
