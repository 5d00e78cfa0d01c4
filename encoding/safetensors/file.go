package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/shoal-mp/shoal/internal/room"
	"github.com/shoal-mp/shoal/tensor"
)

// A File is the tensors of an open file, or of the files that an index names, whose headers were
// checked. Its methods may be called concurrently, Close after all others.
type File struct {
	// MaxBytes is how many bytes of elements Tensor, and Tensors together, may read. 0 stands for
	// what this process may take without somebody being killed; up to 64 MiB are always given. What
	// is mapped has no limit but the files.
	MaxBytes int64
	// Metadata is what was saved beside the tensors, in any of the files; Files are the paths of
	// the files with the tensors, in order, and nil if NewFile has opened them.
	Metadata map[string]string
	Files    []string

	path   string
	names  []string          // of the tensors
	shards map[string]*shard // by the name of the file; one that is alone has none
	home   map[string]*shard // by the name of the tensor
}

// Open opens a file and checks its header. If it is an index (model.safetensors.index.json, by its
// content), Open does that with the files that it names, which are beside it. The caller closes the
// File. The error is an [*encoding.FileError] where a file is malformed, or an index says of a file
// what that does not say.
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

// NewFile opens what a reader has in size bytes, as Open does a file of its own. The caller keeps
// r: Close does not close it, and Map reads.
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

// Names returns the names of the tensors: in the order of the file, or of an index in order.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Info returns dtype and shape of a tensor; ok tells whether there is one of that name.
func (f *File) Info(name string) (info Info, ok bool) {
	if s := f.home[name]; s != nil {
		info, ok = s.header.infos[name]
		info.Shape = slices.Clone(info.Shape)
	}
	return info, ok
}

// Tensor reads a tensor into memory of its own. The error wraps [ErrName] if there is none of that
// name, or ErrLimit: see MaxBytes.
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

// Map returns a tensor whose elements are pages of its file, read when they are touched and copied
// when they are written to, as tensor.FromFile has them; one that the file has not aligned is read.
// The caller closes it, before the File or after. The error wraps [ErrName], or is a
// *tensor.FileError where the file was cut short.
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

// Tensors reads all tensors. The error wraps ErrLimit where they are too many bytes together: see
// MaxBytes.
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
	return room.Check(bytes, bytes, f.MaxBytes, "raise File.MaxBytes if that is meant, or Map it")
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

// Close closes the files that Open has opened. Tensors that were read or mapped stay.
func (f *File) Close() (err error) {
	for s := range maps.Values(f.shards) {
		err = errors.Join(err, s.close())
	}
	return err
}
