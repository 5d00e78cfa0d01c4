package vision

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// datasets are torchvision's data sets whose samples Go makes, by the names of their classes.
var readers = map[value.Global]func(f *fields) data.Dataset{
	value.Named("torchvision.datasets.folder.ImageFolder"): imageFolder,
	value.Named("torchvision.datasets.mnist.MNIST"):        grey,
	value.Named("torchvision.datasets.mnist.FashionMNIST"): grey,
	value.Named("torchvision.datasets.mnist.KMNIST"):       grey,
	value.Named("torchvision.datasets.mnist.EMNIST"):       grey,
	value.Named("torchvision.datasets.mnist.QMNIST"):       qmnist,
	value.Named("torchvision.datasets.usps.USPS"):          grey,
	value.Named("torchvision.datasets.cifar.CIFAR10"):      colours,
	value.Named("torchvision.datasets.cifar.CIFAR100"):     colours,
}

// Module is the prefix of the modules whose classes Open knows.
const Module = "torchvision.datasets."

// Check returns nil, or the reason why Open would refuse an object of a known class, by its pickle
// alone: the error wraps ErrUnsupported. It does not look at the data.
func Check(o *pickle.Object) error {
	state, _ := o.State.(*value.Dict)
	l := new(value.Lifter)
	l.Object = func(o *pickle.Object) (any, error) { return l.Record(o) }
	small := new(value.Dict)
	for _, name := range []string{"transform", "target_transform", "loader", "compat"} {
		if v, ok := state.Get(name); ok {
			lifted, err := l.Lift(v)
			if err != nil {
				return err
			}
			small.Set(name, lifted)
		}
	}
	f := &fields{of: &value.Record{Class: o.Class, State: small}}
	f.check(state)
	return f.err
}

func (f *fields) check(state *value.Dict) {
	channels := 1
	switch f.of.Class.Name {
	case "ImageFolder":
		channels = 3
		f.loader()
		v, _ := state.Get("samples")
		list, _ := v.(*pickle.List)
		if list == nil {
			break
		}
		for _, s := range list.Items {
			if t, ok := s.(value.Tuple); ok && len(t) == 2 {
				f.ending(fmt.Sprint(t[0]))
			}
		}
	case "CIFAR10", "CIFAR100":
		channels = 3
	case "QMNIST":
		f.compatible()
	}
	f.transformed(channels)
	f.lookUp(f.maybe("target_transform"))
}

// Known reports whether Open knows a class.
func Known(class value.Global) bool { return readers[class] != nil }

// Datasets returns the names of the classes that Open knows, sorted.
func Datasets() []string {
	var names []string
	for class := range maps.Keys(readers) {
		names = append(names, class.Name)
	}
	slices.Sort(names)
	return names
}

// Open returns the data set of an object of a known class. A sample is an image and the number of
// its class, int64. The error wraps ErrUnsupported if its samples would not be those of Python.
func Open(r *value.Record) (data.Dataset, error) {
	f := &fields{of: r}
	ds := readers[r.Class](f)
	if f.err != nil {
		return nil, f.err
	}
	return ds, nil
}

// transformed reads the transform of images of channels planes.
func (f *fields) transformed(channels int) image.Pipeline {
	steps, ready, err := Steps(f.maybe("transform"), channels)
	if f.err == nil && err != nil {
		f.err = err
	}
	if err == nil && !ready {
		f.refuse("its samples are images of Pillow, of which PyTorch makes no batch; end its transform with ToTensor(), or with ToImage() and ToDtype(torch.float32, scale=True)")
	}
	return steps
}

// imageFolder opens an ImageFolder. The files are in its list of samples, so it reads no folder.
func imageFolder(f *fields) data.Dataset {
	d := &datasets.ImageFolder{Steps: f.transformed(3)}
	f.loader()
	samples, ok := listOf(f.get("samples"))
	if f.err == nil && !ok {
		f.refuse("samples is %s, and no list", shown(f.maybe("samples")))
	}
	paths, labels := make([]string, 0, len(samples)), make([]any, 0, len(samples))
	for i, s := range samples {
		path, label, ok := sample(s)
		if !ok {
			f.refuse("sample %d is %s, and not a path and a class", i, shown(s))
			break
		}
		if f.ending(path); f.err != nil {
			break
		}
		paths, labels = append(paths, path), append(labels, label)
	}
	targets := f.targets(labels)
	if f.err != nil {
		return nil
	}
	d.Paths, d.Labels = datasets.NewList(paths), tensor.FromSlice(targets, len(targets))
	return d
}

// ending refuses a file that Go does not decode.
func (f *fields) ending(path string) {
	if !decoded[strings.ToLower(filepath.Ext(path))] {
		f.refuse("Go decodes .jpg, .jpeg and .png, and %q is another kind; convert it, or leave it out by is_valid_file", path)
	}
}

// decoded are the endings of files that Go decodes.
var decoded = map[string]bool{".jpg": true, ".jpeg": true, ".png": true}

// sample reads a tuple of a path and a class.
func sample(v any) (path string, label any, ok bool) {
	t, ok := listOf(v)
	if !ok || len(t) != 2 {
		return "", nil, false
	}
	path, ok = t[0].(string)
	return path, t[1], ok && path != "" && !strings.ContainsRune(path, 0)
}

// loader refuses a loader that reads files in another way.
func (f *fields) loader() {
	switch v := f.get("loader"); v {
	case value.Named("torchvision.datasets.folder.default_loader"),
		value.Named("torchvision.datasets.folder.pil_loader"):
	default:
		f.refuse("loader=%s; Go loads as torchvision's default_loader does", shown(v))
	}
}

// grey opens images of one plane in memory: MNIST's, and those of its form.
func grey(f *fields) data.Dataset { return f.inMemory(1, f.get("targets")) }

// colours opens images of three planes in memory: CIFAR's.
func colours(f *fields) data.Dataset { return f.inMemory(3, f.get("targets")) }

// qmnist opens a QMNIST, which has eight numbers for each image; the first is its class.
func qmnist(f *fields) data.Dataset {
	f.compatible()
	t, ok := f.get("targets").(*tensor.Tensor)
	if !ok || t.Dims() != 2 || t.Dim(1) < 1 {
		f.refuse("targets is %s, and not (n, 8)", shown(f.maybe("targets")))
		return nil
	}
	return f.inMemory(1, t.Select(1, 0))
}

func (f *fields) compatible() {
	if !f.flag("compat") {
		f.refuse("compat=False: its targets are vectors")
	}
}

// inMemory opens images that the object holds.
func (f *fields) inMemory(channels int, targets any) data.Dataset {
	d := &pictures{channels: channels, steps: f.transformed(channels)}
	var labels []any
	switch t := targets.(type) {
	case *tensor.Tensor:
		labels = f.elements(t)
	case *pickle.Array:
		if dense, err := value.TensorOf(t); err == nil {
			labels = f.elements(dense)
		}
	default:
		labels, _ = listOf(t)
	}
	d.labels = f.targets(labels)
	d.take(f)
	if f.err != nil {
		return nil
	}
	return d
}

// elements returns the classes in a tensor.
func (f *fields) elements(t *tensor.Tensor) []any {
	if t.Dims() != 1 || !integers[t.DType()] || t.Device() != nil {
		f.refuse("targets are %v of %v, and not whole numbers, one for each image", t.Shape(), t.DType())
		return nil
	}
	all := make([]any, 0, t.Numel())
	for _, n := range tensor.Data[int64](t.Clone().To(tensor.Int64)) {
		all = append(all, n)
	}
	return all
}

// integers are the dtypes of whole numbers.
var integers = map[tensor.DType]bool{tensor.Uint8: true, tensor.Int8: true, tensor.Int16: true,
	tensor.Int32: true, tensor.Int64: true}
