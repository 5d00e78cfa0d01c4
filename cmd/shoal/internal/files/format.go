package files

import (
	"errors"
	"fmt"
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

// A Format is a kind of file.
type Format struct {
	Name   string
	Suffix []string
	// Load maps the file where its format lets it, and reads it otherwise.
	Load func(path string) (Tensors, error)
	Save func(path string, tensors Tensors) error
}

// formats are asked in this order: an index ends in .json, a model in several files as its index does.
var formats = []Format{
	{"safetensors in several files", []string{".safetensors.index.json"}, loadSharded, saveSharded},
	{"safetensors", []string{".safetensors"}, loadSafetensors, saveSafetensors},
	{"PyTorch", []string{".pt", ".pth", ".bin", ".ckpt"}, loadPT, savePT},
	{"numpy array", []string{".npy"}, loadNPY, saveNPY},
	{"numpy archive", []string{".npz"}, npy.LoadAll, npy.SaveAll},
	{"HDF5", []string{".h5", ".hdf5"}, hdf5.Load, saveHDF5},
	{"MessagePack", []string{".msgpack", ".mpk"}, msgpack.Load, msgpack.Save},
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
	Close() error
}

func mapped(s source, err error) (Tensors, error) {
	if err != nil {
		return nil, err
	}
	defer s.Close()
	all := Tensors{}
	for _, name := range s.Names() {
		if all[name], err = s.Map(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func loadSafetensors(path string) (Tensors, error) { return mapped(safetensors.Open(path)) }

func loadSharded(path string) (Tensors, error) { return mapped(safetensors.OpenSharded(path)) }

func saveSafetensors(path string, tensors Tensors) error { return safetensors.Save(path, tensors, nil) }

// shard is how large a file of several may become.
const shard = 5 << 30

func saveSharded(path string, tensors Tensors) error {
	return safetensors.SaveSharded(path, shard, tensors, nil)
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

func saveHDF5(path string, tensors Tensors) error { return hdf5.Save(path, tensors, hdf5.Options{}) }
