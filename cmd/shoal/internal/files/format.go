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

// Errors about the arguments. Callers should test for them with [errors.Is].
var (
	// ErrFormat is wrapped if a file name has no known extension.
	ErrFormat = errors.New("unknown file format")
	// ErrOne is wrapped if the format stores exactly one tensor and there are more or none.
	ErrOne = errors.New("the format stores exactly one tensor")
	// ErrStrict is wrapped if data would be dropped although [Options].Strict is set.
	ErrStrict = errors.New("data would be omitted")
	// ErrSame is wrapped if the output file is one of the input files.
	ErrSame = errors.New("output file is the input file")
)

// Tensors maps names to tensors.
type Tensors = map[string]*tensor.Tensor

// A Content is the decoded contents of a file.
type Content struct {
	Tensors Tensors
	Meta    map[string]string // metadata
	Others  []Other           // everything else, by name
	Strict  bool              // fail rather than drop data
}

// An Other is an item that only its own format can represent.
type Other struct {
	Name string
	Keep func(w *hdf5.Writer) error // writes it again; nil if impossible
}

// otherNames returns the names of the items that are neither tensors nor metadata.
func (c Content) otherNames() (names []string) {
	for _, o := range c.Others {
		names = append(names, o.Name)
	}
	return names
}

// dropItems returns names, the names of items to be dropped. It returns an error that wraps
// [ErrStrict] if c.Strict is set and there are any.
func (c Content) dropItems(names []string) ([]string, error) {
	if c.Strict && len(names) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrStrict, strings.Join(names, ", "))
	}
	return names, nil
}

// sharedGroups describes each group of tensors that share a storage, for the list of dropped
// items. Formats without storages write a copy for each tensor.
func (c Content) sharedGroups() (names []string) {
	on := map[*tensor.Storage][]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Tensors)) {
		s := c.Tensors[name].Storage()
		on[s] = append(on[s], name)
	}
	for _, list := range on {
		if len(list) > 1 {
			names = append(names, "memory shared by "+strings.Join(list, ", "))
		}
	}
	slices.Sort(names)
	return names
}

// nonTensorNames returns the names of all items other than tensors.
func (c Content) nonTensorNames() []string {
	names := c.otherNames()
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		names = append(names, "metadata "+key)
	}
	return names
}

// A Format is a file format.
type Format struct {
	Name   string
	Suffix []string
	// Load maps the file if the format allows it, and reads it otherwise. most limits the memory in
	// bytes; 0 means the file's size and the process's limits.
	Load func(path string, most int64) (Content, error)
	// Save writes the items that the format can represent and returns the names of the dropped
	// ones.
	Save func(path string, c Content) (left []string, err error)
}

// formats are matched in this order. The index suffix must come first, because it is the longer
// one.
var formats = []Format{
	{"safetensors in several files", []string{".safetensors.index.json"}, loadSafetensors, saveSafetensors},
	{"safetensors", []string{".safetensors"}, loadSafetensors, saveSafetensors},
	{"PyTorch", []string{".pt", ".pth", ".bin", ".ckpt"}, loadPT, savePT},
	{"numpy array", []string{".npy"}, loadNPY, saveNPY},
	{"numpy archive", []string{".npz"}, loadNPZ, tensorSaver(npy.Save)},
	{"HDF5", []string{".h5", ".hdf5"}, loadHDF5, saveHDF5},
	{"MessagePack", []string{".msgpack", ".mpk"}, loadMsgpack, tensorSaver(msgpack.Save)},
}

// tensorSaver returns the Save function of a format that stores only tensors. It writes the tensors
// with save, and returns the names of the items that it dropped, or an error that wraps [ErrStrict]
// if items may not be dropped.
func tensorSaver(save func(path string, tensors Tensors) error) func(string, Content) ([]string, error) {
	return func(path string, c Content) ([]string, error) {
		left, err := c.dropItems(append(c.nonTensorNames(), c.sharedGroups()...))
		if err != nil {
			return nil, err
		}
		return left, save(path, c.Tensors)
	}
}

// namedOthers returns items that cannot be written again. Their names are prefixed with what.
func namedOthers(what string, names []string) (others []Other) {
	for _, name := range names {
		others = append(others, Other{Name: what + name})
	}
	return others
}

// Of returns the format for a file name, by its extension in any case. The error wraps
// [ErrFormat] if there is none.
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
	return Format{}, fmt.Errorf("%w: got %s, want an extension among %s", ErrFormat, path, strings.Join(known, " "))
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
	left, err := c.dropItems(append(c.otherNames(), c.sharedGroups()...))
	if err != nil {
		return nil, err
	}
	return left, safetensors.SaveWith(path, c.Tensors, safetensors.SaveOptions{Metadata: c.Meta})
}

// loadPT loads all tensors to the CPU, regardless of their original device. most is the maximum
// number of bytes of elements; see [pt.Options].
func loadPT(path string, most int64) (c Content, err error) {
	v, err := pt.Load(path, pt.Options{Mmap: true, MapLocation: pt.To("cpu"), MaxBytes: most})
	if err != nil {
		return c, err
	}
	tensors, rest, err := pt.StateDict(v)
	return Content{Tensors: tensors, Others: namedOthers("", rest)}, err
}

func savePT(path string, c Content) ([]string, error) {
	left, err := c.dropItems(c.nonTensorNames())
	if err != nil {
		return nil, err
	}
	return left, pt.Save(path, c.Tensors)
}

// alone is the name given to the tensor of a file without names.
const alone = "tensor"

func loadNPY(path string, _ int64) (Content, error) {
	t, err := npy.Map(path)
	return Content{Tensors: Tensors{alone: t}}, err
}

func saveNPY(path string, c Content) ([]string, error) {
	if len(c.Tensors) != 1 {
		return nil, fmt.Errorf("save %s: %w, got %d: use .npz for several", path, ErrOne, len(c.Tensors))
	}
	left := c.nonTensorNames()
	for name, t := range c.Tensors {
		if name != alone {
			left = append(left, "the name "+name)
		}
		left, err := c.dropItems(left)
		if err != nil {
			return nil, err
		}
		return left, npy.Save(path, t)
	}
	return nil, nil
}

// loadNPZ loads the numeric arrays of an archive as tensors, and treats the others as items that
// cannot be converted. most is the maximum number of bytes of elements; see [npy.Archive].
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
	tensors, others, err := msgpack.Load(path, msgpack.Options{MaxBytes: most})
	return Content{Tensors: tensors, Others: namedOthers("value ", others)}, err
}
