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

// readers maps the supported data sets of torchvision to the functions that open them.
var readers = map[value.Global]func(f *fields) data.Dataset{
	value.Named("torchvision.datasets.folder.ImageFolder"): openImageFolder,
	value.Named("torchvision.datasets.mnist.MNIST"):        openGrey,
	value.Named("torchvision.datasets.mnist.FashionMNIST"): openGrey,
	value.Named("torchvision.datasets.mnist.KMNIST"):       openGrey,
	value.Named("torchvision.datasets.mnist.EMNIST"):       openGrey,
	value.Named("torchvision.datasets.mnist.QMNIST"):       openQMNIST,
	value.Named("torchvision.datasets.usps.USPS"):          openGrey,
	value.Named("torchvision.datasets.cifar.CIFAR10"):      openRGB,
	value.Named("torchvision.datasets.cifar.CIFAR100"):     openRGB,
}

// Module is the prefix of the modules of torchvision's data sets.
const Module = "torchvision.datasets."

// Check reports whether [Open] accepts the pickled object o. The class of the object must be
// [Known]. Check returns nil, or an error that wraps [value.ErrUnsupported] with the reason. It
// inspects the attributes only and reads no data.
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
		f.checkLoader()
		v, _ := state.Get("samples")
		list, _ := v.(*pickle.List)
		if list == nil {
			break
		}
		for _, s := range list.Items {
			if t, ok := s.(value.Tuple); ok && len(t) == 2 {
				f.checkFormat(fmt.Sprint(t[0]))
			}
		}
	case "CIFAR10", "CIFAR100":
		channels = 3
	case "QMNIST":
		f.checkCompat()
	}
	f.readTransform(channels)
	f.lookupFunc(f.optionalAttr("target_transform"))
}

// Known reports whether [Open] supports a class. It does not say whether Open supports the
// attributes of an object: see [Check].
func Known(class value.Global) bool { return readers[class] != nil }

// Datasets returns the names of the classes that [Open] supports, sorted.
func Datasets() []string {
	var names []string
	for class := range maps.Keys(readers) {
		names = append(names, class.Name)
	}
	slices.Sort(names)
	return names
}

// Open returns the data set that an object represents. The class of the object must be [Known];
// otherwise Open panics. A sample consists of an image and its class index, an int64. The error
// wraps [value.ErrUnsupported] if the samples would differ from Python's. The data set is also an
// [io.Closer], and the caller must close it.
func Open(r *value.Record) (data.Dataset, error) {
	f := &fields{of: r}
	ds := readers[r.Class](f)
	if f.err != nil {
		return nil, f.err
	}
	return ds, nil
}

// readTransform converts the attribute transform for images with the given number of channels.
// It refuses a transform that Go does not support or that does not end in tensors: see
// [fields.refuse].
func (f *fields) readTransform(channels int) image.Pipeline {
	steps, ready, err := Steps(f.optionalAttr("transform"), channels)
	if f.err == nil && err != nil {
		f.err = err
	}
	if err == nil && !ready {
		f.refuse("samples are Pillow images, which PyTorch cannot batch: end the transform with ToTensor(), or " +
			"with ToImage() and ToDtype(torch.float32, scale=True)")
	}
	return steps
}

// openImageFolder opens an ImageFolder, or returns nil and sets f.err. It takes the file names
// from the attribute samples and reads no directory.
func openImageFolder(f *fields) data.Dataset {
	d := &datasets.ImageFolder{Steps: f.readTransform(3)}
	f.checkLoader()
	samples, ok := listOf(f.get("samples"))
	if f.err == nil && !ok {
		f.refuse("samples is %s, want a list", showValue(f.optionalAttr("samples")))
	}
	paths, labels := make([]string, 0, len(samples)), make([]any, 0, len(samples))
	for i, s := range samples {
		path, label, ok := decodeSample(s)
		if !ok {
			f.refuse("sample %d is %s, want a path and a class", i, showValue(s))
			break
		}
		if f.checkFormat(path); f.err != nil {
			break
		}
		paths, labels = append(paths, path), append(labels, label)
	}
	targets := f.readTargets(labels)
	if f.err != nil {
		return nil
	}
	d.Paths, d.Labels = datasets.NewList(paths), tensor.FromSlice(targets, len(targets))
	return d
}

// checkFormat refuses a file in a format that Go does not decode, by the extension of its name:
// see [fields.refuse].
func (f *fields) checkFormat(path string) {
	if !decoded[strings.ToLower(filepath.Ext(path))] {
		f.refuse("file %q is not .jpg, .jpeg or .png: convert it, or exclude it with is_valid_file", path)
	}
}

// decoded is the set of supported file name extensions.
var decoded = map[string]bool{".jpg": true, ".jpeg": true, ".png": true}

// decodeSample decodes a tuple of a path and a class index. ok is false for any other value, and
// for an empty path; the class index is not checked.
func decodeSample(v any) (path string, label any, ok bool) {
	t, ok := listOf(v)
	if !ok || len(t) != 2 {
		return "", nil, false
	}
	path, ok = t[0].(string)
	return path, t[1], ok && path != "" && !strings.ContainsRune(path, 0)
}

// checkLoader refuses a loader other than torchvision's default: see [fields.refuse].
func (f *fields) checkLoader() {
	switch v := f.get("loader"); v {
	case value.Named("torchvision.datasets.folder.default_loader"),
		value.Named("torchvision.datasets.folder.pil_loader"):
	default:
		f.refuse("loader=%s, Go supports only torchvision's default_loader", showValue(v))
	}
}

// openGrey opens grayscale images that are in the pickle, such as MNIST's. It returns nil and
// sets f.err if they are not supported.
func openGrey(f *fields) data.Dataset { return f.openInMemory(1, f.get("targets")) }

// openRGB opens RGB images that are in the pickle, such as CIFAR's. It returns nil and sets
// f.err if they are not supported.
func openRGB(f *fields) data.Dataset { return f.openInMemory(3, f.get("targets")) }

// openQMNIST opens a QMNIST. Its targets have eight columns, and the first one is the class
// index. It returns nil and sets f.err if they are not supported.
func openQMNIST(f *fields) data.Dataset {
	f.checkCompat()
	t, ok := f.get("targets").(*tensor.Tensor)
	if !ok || t.Dims() != 2 || t.Dim(1) < 1 {
		f.refuse("targets is %s, want shape (n, 8)", showValue(f.optionalAttr("targets")))
		return nil
	}
	return f.openInMemory(1, t.Select(1, 0))
}

func (f *fields) checkCompat() {
	if !f.readFlag("compat") {
		f.refuse("compat=False makes the targets vectors, which Go does not support")
	}
}

// openInMemory opens images that are in the pickle, with one or three channels. targets contains
// their classes, in a tensor, an array or a list. It returns nil and sets f.err if they are not
// supported.
func (f *fields) openInMemory(channels int, targets any) data.Dataset {
	d := &pictures{channels: channels, steps: f.readTransform(channels)}
	var labels []any
	switch t := targets.(type) {
	case *tensor.Tensor:
		labels = f.classIndices(t)
	case *pickle.Array:
		if dense, err := value.TensorOf(t); err == nil {
			labels = f.classIndices(dense)
		}
	default:
		labels, _ = listOf(t)
	}
	d.labels = f.readTargets(labels)
	d.readImages(f)
	if f.err != nil {
		return nil
	}
	return d
}

// classIndices returns the class indices in a tensor as int64 values. It refuses a tensor that
// is not a vector of integers, and returns nil: see [fields.refuse].
func (f *fields) classIndices(t *tensor.Tensor) []any {
	if t.Dims() != 1 || !integers[t.DType()] || t.Device() != nil {
		f.refuse("targets have shape %v and dtype %v, want one integer per image", t.Shape(), t.DType())
		return nil
	}
	all := make([]any, 0, t.Numel())
	for _, n := range tensor.Data[int64](t.Clone().To(tensor.Int64)) {
		all = append(all, n)
	}
	return all
}

// integers is the set of supported integer dtypes.
var integers = map[tensor.DType]bool{tensor.Uint8: true, tensor.Int8: true, tensor.Int16: true,
	tensor.Int32: true, tensor.Int64: true}
