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

// A File reads the tensors of one file, or of all files that an index names. Open has checked the
// headers. Several goroutines may call its methods; Close is called after all others.
type File struct {
	// MaxBytes is how many bytes of elements one call of Tensor or Tensors may read. 0 stands for
	// the memory that the machine and the cgroup have left for this process, and for 64 MiB where
	// they have less. Map has no limit.
	MaxBytes int64
	// Metadata has the metadata of all files. Files are the paths of the files that have the
	// tensors, in order. Files is nil if NewFile made the File.
	Metadata map[string]string
	Files    []string

	path   string
	names  []string          // of the tensors
	shards map[string]*shard // by the name of the file; one that is alone has none
	home   map[string]*shard // by the name of the tensor
}

// Open opens a file and checks its header. If the file is an index, such as
// model.safetensors.index.json, Open opens and checks the files that the index names, in the same
// directory. Open tells an index by its content. The caller closes the File. The error is an
// [*encoding.FileError] where a file is malformed, or an index contradicts a file.
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
	return single(s), nil
}

// NewFile checks the header of a file of size bytes that r reads. Close does not close r. Map reads
// to the heap, since there is no file to map. The error is an [*encoding.FileError].
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	s := &shard{r: r}
	if err := s.readHeader(size); err != nil {
		return nil, err
	}
	return single(s), nil
}

// single makes a File of one shard.
func single(s *shard) *File {
	f := &File{path: s.path, names: s.header.names(), shards: map[string]*shard{"": s}, home: map[string]*shard{}}
	for _, name := range f.names {
		f.home[name] = s
	}
	f.describe()
	return f
}

// describe fills in what is known of the files.
func (f *File) describe() {
	f.Metadata = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.shards)) {
		s := f.shards[name]
		maps.Copy(f.Metadata, s.header.meta)
		if s.path != "" {
			f.Files = append(f.Files, filepath.Clean(s.path))
		}
	}
}

// Names returns the names of the tensors in the order of the file. Those of an index are sorted.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Info returns the dtype and the shape of a tensor; ok is false if the file has none of this name.
func (f *File) Info(name string) (info Info, ok bool) {
	if s := f.home[name]; s != nil {
		info, ok = s.header.infos[name]
		info.Shape = slices.Clone(info.Shape)
	}
	return info, ok
}

// Tensor reads the tensor of a name to the heap. The caller closes it. The error wraps ErrName if
// the file has no such tensor, or ErrLimit if it is larger than MaxBytes.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	s, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if err := f.allow(name); err != nil {
		return nil, about(s.path, name, err)
	}
	return s.read(name)
}

// Map returns a tensor whose elements are pages of the file, which the kernel reads when they are
// touched and copies when they are written to: see [tensor.FromFile]. Where the file does not align
// a tensor to its dtype, Map reads it to the heap. The caller closes the tensor, before the File or
// after. The error wraps ErrName, or tensor.ErrFile where the file was cut short.
func (f *File) Map(name string) (*tensor.Tensor, error) {
	s, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if !s.mappable(name) {
		return f.Tensor(name)
	}
	return s.view(name)
}

func (f *File) find(name string) (*shard, error) {
	if s := f.home[name]; s != nil {
		return s, nil
	}
	return nil, about(f.path, name, fmt.Errorf("%w; Names lists what there is", ErrName))
}

// Tensors reads all tensors to the heap. The caller closes them. The error wraps ErrLimit if all
// together are larger than MaxBytes.
func (f *File) Tensors() (map[string]*tensor.Tensor, error) {
	if err := f.allow(f.names...); err != nil {
		return nil, about(f.path, "", err)
	}
	return each(f.names, f.Tensor)
}

// allow says whether tensors may be read, whose sizes their files were found to have.
func (f *File) allow(names ...string) error {
	bytes := int64(0)
	for _, name := range names {
		bytes += f.home[name].bytes(name)
	}
	return safefile.CheckSize(bytes, bytes, f.MaxBytes, "raise File.MaxBytes if that is meant, or Map it")
}

// each calls get for all names.
func each(names []string, get func(string) (*tensor.Tensor, error)) (map[string]*tensor.Tensor, error) {
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

// Close closes the files that Open has opened. Tensors that were read or mapped stay valid.
func (f *File) Close() (err error) {
	for s := range maps.Values(f.shards) {
		err = errors.Join(err, s.close())
	}
	return err
}
