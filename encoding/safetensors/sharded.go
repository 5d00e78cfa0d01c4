package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/regular"
	"github.com/shoal-mp/shoal/internal/replace"
	"github.com/shoal-mp/shoal/internal/room"
	"github.com/shoal-mp/shoal/tensor"
)

// indexSuffix ends the name of an index, after that of the model.
const indexSuffix = ".safetensors.index.json"

// An index says in which file each tensor is.
type index struct {
	Metadata  map[string]any    `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// Sharded is a model in several files, all of them open. Its methods may be called concurrently,
// Close after all others.
type Sharded struct {
	// MaxBytes is File.MaxBytes, for the tensors of all files together.
	MaxBytes int64

	path   string
	shards map[string]*File // by the name of the file
	home   map[string]*File // by the name of the tensor
}

// OpenSharded opens the files of an index, which are beside it, and checks their headers. The
// caller closes the Sharded. A malformed index, and one that says of a file what that does not say,
// is an [*encoding.FileError].
func OpenSharded(path string) (s *Sharded, err error) {
	ix, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	s = &Sharded{path: path, shards: map[string]*File{}, home: map[string]*File{}}
	for _, name := range slices.Sorted(maps.Keys(ix.WeightMap)) {
		if err := s.enter(name, ix.WeightMap[name]); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func readIndex(path string) (ix index, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return ix, fmt.Errorf("open tensors: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	if err != nil {
		return ix, fmt.Errorf("read tensors: %w", err)
	}
	if err = json.Unmarshal(b, &ix); err == nil && (ix.WeightMap == nil || len(b) > maxHeader) {
		err = errors.New("it has no weight_map, or too much")
	}
	if err != nil {
		return ix, about(path, "", fmt.Errorf("%w: no index of tensors: %w", ErrHeader, err))
	}
	return ix, nil
}

// enter finds a tensor in the file that the index names.
func (s *Sharded) enter(name, file string) (err error) {
	f := s.shards[file]
	if f == nil {
		if !filepath.IsLocal(file) || filepath.Base(file) != file || !strings.HasSuffix(file, ".safetensors") {
			return about(s.path, name, fmt.Errorf("%w: %q is no file beside the index", ErrHeader, file))
		}
		if f, err = Open(filepath.Join(filepath.Dir(s.path), file)); err != nil {
			return err
		}
		s.shards[file] = f
	}
	if _, ok := f.Info(name); !ok {
		return about(s.path, name, fmt.Errorf("%w: it is not in %s", ErrHeader, file))
	}
	s.home[name] = f
	return nil
}

// Names returns the names of the tensors in order.
func (s *Sharded) Names() []string { return slices.Sorted(maps.Keys(s.home)) }

// Info returns dtype and shape of a tensor; ok tells whether the model has it.
func (s *Sharded) Info(name string) (info Info, ok bool) {
	if f := s.home[name]; f != nil {
		return f.Info(name)
	}
	return info, false
}

// Files returns the paths of the files beside the index, in order.
func (s *Sharded) Files() (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(s.shards)) {
		paths = append(paths, filepath.Join(filepath.Dir(s.path), name))
	}
	return paths
}

// Metadata returns what was saved beside the tensors in any of the files.
func (s *Sharded) Metadata() map[string]string {
	all := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(s.shards)) {
		maps.Copy(all, s.shards[file].header.meta)
	}
	return all
}

// Tensor reads a tensor, as File.Tensor does.
func (s *Sharded) Tensor(name string) (*tensor.Tensor, error) {
	f, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if err := s.allow(name); err != nil {
		return nil, err
	}
	return f.fetch(name, f.header.infos[name])
}

// Map maps a tensor, as File.Map does.
func (s *Sharded) Map(name string) (*tensor.Tensor, error) {
	f, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return f.Map(name)
}

func (s *Sharded) find(name string) (*File, error) {
	if f := s.home[name]; f != nil {
		return f, nil
	}
	return nil, about(s.path, name, fmt.Errorf("%w; Names lists what there is", ErrName))
}

// Tensors reads all tensors. The error wraps ErrLimit where they are too many bytes together: see
// MaxBytes.
func (s *Sharded) Tensors() (map[string]*tensor.Tensor, error) {
	if err := s.allow(s.Names()...); err != nil {
		return nil, err
	}
	return each(s.Names(), s.Tensor)
}

func (s *Sharded) allow(names ...string) error {
	bytes := int64(0)
	for _, name := range names {
		bytes += s.home[name].bytes(name)
	}
	if err := room.Check(bytes, bytes, s.MaxBytes, "raise Sharded.MaxBytes if that is meant, or Map it"); err != nil {
		return about(s.path, "", err)
	}
	return nil
}

// Close closes the files. Tensors that were read or mapped stay.
func (s *Sharded) Close() (err error) {
	for f := range maps.Values(s.shards) {
		err = errors.Join(err, f.Close())
	}
	return err
}

// SaveSharded writes the tensors to files of at most limit bytes of elements, or of one tensor
// where that is larger, and then an index at path, which ends in .safetensors.index.json:
// model.safetensors.index.json and model-00001-of-00002.safetensors, say. Each file takes its place
// when it is whole, the index last. For meta see [Save].
func SaveSharded(path string, limit int, tensors map[string]*tensor.Tensor, meta map[string]string) error {
	model, ok := strings.CutSuffix(filepath.Base(path), indexSuffix)
	if !ok {
		return fmt.Errorf("save %s: %w: an index ends in %s", path, ErrName, indexSuffix)
	}
	shards, total := split(tensors, limit)
	ix := index{Metadata: map[string]any{"total_size": total}, WeightMap: map[string]string{}}
	for i, shard := range shards {
		file := fmt.Sprintf("%s-%05d-of-%05d.safetensors", model, i+1, len(shards))
		if err := Save(filepath.Join(filepath.Dir(path), file), shard, meta); err != nil {
			return err
		}
		for name := range shard {
			ix.WeightMap[name] = file
		}
	}
	return replace.Write(path, func(f *os.File) error {
		e := json.NewEncoder(f)
		e.SetIndent("", "  ")
		return e.Encode(ix)
	})
}

// split makes sets of tensors, in the order of their names.
func split(tensors map[string]*tensor.Tensor, limit int) (shards []map[string]*tensor.Tensor, total int) {
	room := 0
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		size := tensors[name].Nbytes()
		if len(shards) == 0 || size > room {
			shards = append(shards, map[string]*tensor.Tensor{})
			room = limit
		}
		shards[len(shards)-1][name] = tensors[name]
		room -= size
		total += size
	}
	return shards, total
}
