package files

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// What may be wrong with arguments. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where the name of a file ends in no known way.
	ErrFormat = errors.New("unknown kind of file")
	// ErrOne is wrapped where a format holds one tensor, and there are more or none.
	ErrOne = errors.New("the format holds exactly one tensor")
	// ErrStrict is wrapped where something would be left behind that must not be.
	ErrStrict = errors.New("something would be left behind")
	// ErrSame is wrapped where a file would be written over one that is read.
	ErrSame = errors.New("that is the file that is read")
)

// Tensors are what a file has, by name.
type Tensors = map[string]*tensor.Tensor

// A Content is what a file has.
type Content struct {
	Tensors Tensors
	Meta    map[string]string // text about them
	Others  []Other           // what is neither, by name
	Strict  bool              // nothing may be left behind
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

// leave returns the names of what is left behind, with an error where nothing may be.
func (c Content) leave(names []string) ([]string, error) {
	if c.Strict && len(names) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrStrict, strings.Join(names, ", "))
	}
	return names, nil
}

// sharing names the tensors that are views of one storage, which become several.
func (c Content) sharing() (names []string) {
	on := map[*tensor.Storage][]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Tensors)) {
		s := c.Tensors[name].Storage()
		on[s] = append(on[s], name)
	}
	for _, list := range on {
		if len(list) > 1 {
			names = append(names, "that "+strings.Join(list, ", ")+" share memory")
		}
	}
	slices.Sort(names)
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
	// Load maps the file where its format lets it, and reads it otherwise. It asks for no more
	// memory than most, or where that is 0 than the file can fill and the process may take.
	Load func(path string, most int64) (Content, error)
	// Save writes what the format has room for, and returns the names of what is left behind.
	Save func(path string, c Content) (left []string, err error)
}

// formats are asked in this order: an index ends in .json, a model in several files as its index
// does.
var formats = []Format{
	{"safetensors in several files", []string{".safetensors.index.json"}, loadSafetensors, saveSharded},
	{"safetensors", []string{".safetensors"}, loadSafetensors, saveSafetensors},
	{"PyTorch", []string{".pt", ".pth", ".bin", ".ckpt"}, loadPT, savePT},
	{"numpy array", []string{".npy"}, loadNPY, saveNPY},
	{"numpy archive", []string{".npz"}, loadNPZ, plain(npy.Save)},
	{"HDF5", []string{".h5", ".hdf5"}, loadHDF5, saveHDF5},
	{"MessagePack", []string{".msgpack", ".mpk"}, loadMsgpack, plain(msgpack.Save)},
}

// plain is for formats that have tensors alone.
func plain(save func(path string, tensors Tensors) error) func(string, Content) ([]string, error) {
	return func(path string, c Content) ([]string, error) {
		left, err := c.leave(append(c.beside(), c.sharing()...))
		if err != nil {
			return nil, err
		}
		return left, save(path, c.Tensors)
	}
}

// named are others that nobody writes again.
func named(what string, names []string) (others []Other) {
	for _, name := range names {
		others = append(others, Other{Name: what + name})
	}
	return others
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

func loadSafetensors(path string, _ int64) (Content, error) {
	s, err := safetensors.Open(path)
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
	return Content{Tensors: all, Meta: s.Metadata}, nil
}

func saveSafetensors(path string, c Content) ([]string, error) {
	left, err := c.leave(append(c.others(), c.sharing()...))
	if err != nil {
		return nil, err
	}
	return left, safetensors.Save(path, c.Tensors, c.Meta)
}

// shard is how large a file of several may become.
const shard = 5 << 30

func saveSharded(path string, c Content) ([]string, error) {
	left, err := c.leave(append(c.others(), c.sharing()...))
	if err != nil {
		return nil, err
	}
	return left, safetensors.SaveSharded(path, shard, c.Tensors, c.Meta)
}

// loadPT loads to the CPU whatever was saved from elsewhere.
func loadPT(path string, most int64) (c Content, err error) {
	v, err := pt.Load(path, pt.Options{Mmap: true, MapLocation: pt.To("cpu"), MaxBytes: most})
	if err != nil {
		return c, err
	}
	tensors, rest, err := pt.StateDict(v)
	return Content{Tensors: tensors, Others: named("", rest)}, err
}

func savePT(path string, c Content) ([]string, error) {
	left, err := c.leave(c.beside())
	if err != nil {
		return nil, err
	}
	return left, pt.Save(path, c.Tensors)
}

// alone is the name of the tensor in a file that has no names.
const alone = "tensor"

func loadNPY(path string, _ int64) (Content, error) {
	t, err := npy.Map(path)
	return Content{Tensors: Tensors{alone: t}}, err
}

func saveNPY(path string, c Content) ([]string, error) {
	if len(c.Tensors) != 1 {
		return nil, fmt.Errorf("save %s: %w, and there are %d; a .npz holds several", path, ErrOne, len(c.Tensors))
	}
	left := c.beside()
	for name, t := range c.Tensors {
		if name != alone {
			left = append(left, "the name "+name)
		}
		left, err := c.leave(left)
		if err != nil {
			return nil, err
		}
		return left, npy.Save(path, t)
	}
	return nil, nil
}

// loadNPZ takes the members that are no numbers for others.
func loadNPZ(path string, most int64) (c Content, err error) {
	a, err := npy.OpenArchive(path)
	if err != nil {
		return c, err
	}
	defer a.Close()
	a.MaxBytes = most
	if c.Tensors, err = a.Tensors(); c.Tensors == nil {
		return c, err
	}
	for _, array := range a.List() {
		if c.Tensors[array.Name] == nil {
			c.Others = append(c.Others, Other{Name: "array " + array.Name})
		}
	}
	return c, nil
}

func loadMsgpack(path string, most int64) (Content, error) {
	tensors, others, err := msgpack.Load(path, most)
	return Content{Tensors: tensors, Others: named("value ", others)}, err
}
