package files

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/hdf5"
	"github.com/shoal-mp/shoal/msgpack"
	"github.com/shoal-mp/shoal/npy"
	"github.com/shoal-mp/shoal/safetensors"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch/pt"
)

// What may be wrong with arguments. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where the name of a file ends in no known way.
	ErrFormat = errors.New("unknown kind of file")
	// ErrOne is wrapped where a format holds one tensor, and there are more or none.
	ErrOne = errors.New("the format holds exactly one tensor")
)

// Tensors are what a file has, by name.
type Tensors = map[string]*tensor.Tensor

// A Content is what a file has.
type Content struct {
	Tensors Tensors
	Meta    map[string]string // text about them
	Others  []Other           // what is neither, by name
}

// An Other is what only the format that has it has room for.
type Other struct {
	Name string
	Keep func(w *hdf5.Writer) error // nil where it cannot be written again
}

// others are the names of what is neither a tensor nor text about them.
func (c Content) others() (names []string) {
	for _, o := range c.Others {
		names = append(names, o.Name)
	}
	return names
}

// beside are the names of all but tensors.
func (c Content) beside() []string {
	names := c.others()
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		names = append(names, "metadata "+key)
	}
	return names
}

// A Format is a kind of file.
type Format struct {
	Name   string
	Suffix []string
	// Load maps the file where its format lets it, and reads it otherwise.
	Load func(path string) (Content, error)
	// Save writes what the format has room for, and returns the names of what is left behind.
	Save func(path string, c Content) (left []string, err error)
}

// formats are asked in this order: an index ends in .json, a model in several files as its index does.
var formats = []Format{
	{"safetensors in several files", []string{".safetensors.index.json"}, loadSharded, saveSharded},
	{"safetensors", []string{".safetensors"}, loadSafetensors, saveSafetensors},
	{"PyTorch", []string{".pt", ".pth", ".bin", ".ckpt"}, bare(loadPT), plain(savePT)},
	{"numpy array", []string{".npy"}, bare(loadNPY), plain(saveNPY)},
	{"numpy archive", []string{".npz"}, bare(npy.LoadAll), plain(npy.SaveAll)},
	{"HDF5", []string{".h5", ".hdf5"}, loadHDF5, saveHDF5},
	{"MessagePack", []string{".msgpack", ".mpk"}, bare(msgpack.Load), plain(msgpack.Save)},
}

// bare is for formats that have tensors alone.
func bare(load func(path string) (Tensors, error)) func(string) (Content, error) {
	return func(path string) (Content, error) {
		tensors, err := load(path)
		return Content{Tensors: tensors}, err
	}
}

func plain(save func(path string, tensors Tensors) error) func(string, Content) ([]string, error) {
	return func(path string, c Content) ([]string, error) { return c.beside(), save(path, c.Tensors) }
}

// Of returns the format that the name of a file says. The error wraps ErrFormat.
func Of(path string) (Format, error) {
	var known []string
	for _, f := range formats {
		for _, s := range f.Suffix {
			if strings.HasSuffix(strings.ToLower(path), s) {
				return f, nil
			}
			known = append(known, s)
		}
	}
	return Format{}, fmt.Errorf("%w: %s ends in none of %s", ErrFormat, path, strings.Join(known, " "))
}

// source is what both kinds of safetensors are.
type source interface {
	Names() []string
	Map(name string) (*tensor.Tensor, error)
	Metadata() map[string]string
	Close() error
}

func mapped(s source, err error) (Content, error) {
	if err != nil {
		return Content{}, err
	}
	defer s.Close()
	all := Tensors{}
	for _, name := range s.Names() {
		if all[name], err = s.Map(name); err != nil {
			return Content{}, err
		}
	}
	return Content{Tensors: all, Meta: s.Metadata()}, nil
}

func loadSafetensors(path string) (Content, error) { return mapped(safetensors.Open(path)) }

func loadSharded(path string) (Content, error) { return mapped(safetensors.OpenSharded(path)) }

func saveSafetensors(path string, c Content) ([]string, error) {
	return c.others(), safetensors.Save(path, c.Tensors, c.Meta)
}

// shard is how large a file of several may become.
const shard = 5 << 30

func saveSharded(path string, c Content) ([]string, error) {
	return c.others(), safetensors.SaveSharded(path, shard, c.Tensors, c.Meta)
}

// loadPT loads to the CPU whatever was saved from elsewhere.
func loadPT(path string) (Tensors, error) {
	v, err := pt.Load(path, pt.Options{Mmap: true, MapLocation: pt.To("cpu")})
	if err != nil {
		return nil, err
	}
	return pt.StateDict(v)
}

func savePT(path string, tensors Tensors) error { return pt.Save(path, tensors) }

// alone is the name of the tensor in a file that has no names.
const alone = "tensor"

func loadNPY(path string) (Tensors, error) {
	t, err := npy.Map(path)
	return Tensors{alone: t}, err
}

func saveNPY(path string, tensors Tensors) error {
	if len(tensors) != 1 {
		return fmt.Errorf("save %s: %w, and there are %d; a .npz holds several", path, ErrOne, len(tensors))
	}
	for _, t := range tensors {
		return npy.Save(path, t)
	}
	return nil
}
