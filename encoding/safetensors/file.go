package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// File reads the tensors of a file, or of all files of an index. [Open] and [NewFile] return
// one; the headers have been validated. Its methods may be called from several goroutines, but
// [File.Close] must be called after all other calls have returned.
type File struct {
	// MaxBytes limits the number of bytes of elements that one call of [File.Tensor] or
	// [File.Tensors] may read. If it is 0, the limit is the memory available to the process on the
	// machine and in its cgroup, but at least 64 MiB. [File.Map] has no limit, unless it reads the
	// tensor to the heap.
	MaxBytes int64
	// Metadata is the merged metadata of all files. Files contains the paths of the files with the
	// tensors, in order. It is nil if the File was created by [NewFile].
	Metadata map[string]string
	Files    []string

	path   string
	names  []string          // tensor names
	shards map[string]*shard // by file name; "" for a single file
	home   map[string]*shard // by tensor name
}

// Open opens a file and validates its header. If the file is an index, such as
// model.safetensors.index.json, Open opens all files that it lists, which must be in the same
// directory. An index is recognized by its content, not its name. The caller must close the [File].
// The error is an [*encoding.FileError] if a file is malformed or contradicts the index; otherwise
// it is the error of opening or reading.
func Open(path string) (*File, error) {
	listed, err := isIndex(path)
	if err != nil {
		return nil, err
	}
	if listed {
		return openIndex(path)
	}
	s, err := openShard(path)
	if err != nil {
		return nil, err
	}
	return newSingleFile(s), nil
}

// NewFile reads a file of size bytes from r and validates its header. [File.Close] does not close
// r. [File.Map] copies to the heap, because there is no file to map. The error is an
// [*encoding.FileError].
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	s := &shard{r: r}
	if err := s.readHeader(size); err != nil {
		return nil, err
	}
	return newSingleFile(s), nil
}

// newSingleFile returns a File with one shard, which it then owns.
func newSingleFile(s *shard) *File {
	f := &File{path: s.path, names: s.header.names(), shards: map[string]*shard{"": s}, home: map[string]*shard{}}
	for _, name := range f.names {
		f.home[name] = s
	}
	f.setMetadata()
	return f
}

// setMetadata sets the Metadata and Files fields from f.shards. It must be called once.
func (f *File) setMetadata() {
	f.Metadata = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.shards)) {
		s := f.shards[name]
		maps.Copy(f.Metadata, s.header.meta)
		if s.path != "" {
			f.Files = append(f.Files, filepath.Clean(s.path))
		}
	}
}

// Names returns the names of the tensors in file order, or sorted if the File is an index. The
// caller may modify the returned slice.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Info returns the dtype and the shape of a tensor. The caller may modify the shape. ok is false
// if there is no tensor with this name.
func (f *File) Info(name string) (info Info, ok bool) {
	if s := f.home[name]; s != nil {
		info, ok = s.header.infos[name]
		info.Shape = slices.Clone(info.Shape)
	}
	return info, ok
}

// Tensor reads a tensor to the heap. The caller must close it. The error wraps [ErrName] if there
// is no such tensor, or [ErrLimit] if it is larger than MaxBytes; otherwise it is the error of
// reading.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	s, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if err := f.checkLimit(name); err != nil {
		return nil, wrapError(s.path, name, err)
	}
	return s.read(name)
}

// Map returns a tensor backed by the pages of the file. The kernel loads them on access and
// copies them on write; see [tensor.FromFile]. A tensor that is not aligned to its dtype is read
// to the heap instead. The caller must close the tensor, and may do so after closing the File.
// The error wraps [ErrName] if there is no such tensor, or [tensor.ErrFile] if the file was
// truncated. If the tensor is read to the heap, it is an error of [File.Tensor], such as
// [ErrLimit].
func (f *File) Map(name string) (*tensor.Tensor, error) {
	s, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if !s.isMappable(name) {
		return f.Tensor(name)
	}
	return s.mapTensor(name)
}

func (f *File) find(name string) (*shard, error) {
	if s := f.home[name]; s != nil {
		return s, nil
	}
	return nil, wrapError(f.path, name, fmt.Errorf("%w; Names lists the names", ErrName))
}

// Tensors reads all tensors to the heap, by name. The caller must close them. The error wraps
// [ErrLimit] if the tensors together are larger than MaxBytes; otherwise it is the error of
// reading.
func (f *File) Tensors() (map[string]*tensor.Tensor, error) {
	if err := f.checkLimit(f.names...); err != nil {
		return nil, wrapError(f.path, "", err)
	}
	return collectTensors(f.names, f.Tensor)
}

// checkLimit returns an error that wraps [ErrLimit] if the named tensors together exceed MaxBytes.
// The names must exist.
func (f *File) checkLimit(names ...string) error {
	bytes := int64(0)
	for _, name := range names {
		bytes += f.home[name].tensorSize(name)
	}
	return safefile.CheckSize(bytes, bytes, f.MaxBytes, "raise File.MaxBytes if this is intended, or use Map")
}

// collectTensors calls get for each name and returns the results. It stops at the first error
// and returns it; the tensors before are then left to the garbage collector.
func collectTensors(names []string, get func(string) (*tensor.Tensor, error)) (map[string]*tensor.Tensor, error) {
	all := make(map[string]*tensor.Tensor, len(names))
	for _, name := range names {
		t, err := get(name)
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// Close closes the files that [Open] opened. Tensors that were read or mapped stay valid.
func (f *File) Close() (err error) {
	for s := range maps.Values(f.shards) {
		err = errors.Join(err, s.close())
	}
	return err
}
