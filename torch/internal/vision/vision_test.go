package vision

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// captures are objects that Python wrote: see testdata/capture.py.
func captures(t testing.TB) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/captures.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]byte{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		name, text, _ := strings.Cut(in.Text(), " ")
		if all[name], err = base64.StdEncoding.DecodeString(text); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// anyName allows all names, as a worker does.
func anyName(g value.Global) (pickle.Constructor, bool) { return value.Names()[g], true }

// lifted returns the object in a pickle.
func lifted(b []byte) (any, error) {
	tree, err := pickle.Unmarshal(b, anyName, pickle.Limits{Bytes: 1 << 20, Items: 1 << 14})
	if err != nil {
		return nil, err
	}
	l := new(value.Lifter)
	l.Object = func(o *pickle.Object) (any, error) { return l.Record(o) }
	l.Outside = func(*pickle.Persistent) (any, error) { return nil, nil }
	return l.Lift(tree)
}

// use makes the samples of a data set, or applies steps to an image. Any error must be a known one.
func use(t *testing.T, v any) error {
	t.Helper()
	if r, ok := v.(*value.Record); ok && Known(r.Class) {
		ds, err := Open(r)
		if err != nil {
			return unsupported(t, err)
		}
		for i := range min(2, ds.Len()) {
			if _, err := ds.Get(context.Background(), i); err != nil && !errors.Is(err, image.ErrSize) &&
				!errors.Is(err, os.ErrNotExist) {
				t.Errorf("sample %d: %v", i, err)
			}
		}
		return nil
	}
	for _, channels := range []int{3, 1} {
		steps, _, err := Steps(v, channels)
		if err != nil {
			if unsupported(t, err); channels == 3 {
				return err
			}
			continue
		}
		im := new(image.Image)
		im.SetPacked(make([]uint8, 33*47*channels), channels, 33, 47)
		if err := steps.Apply(im, rand.New(rand.NewPCG(1, 2))); err != nil && !errors.Is(err, image.ErrSize) {
			t.Errorf("%+v: %v", steps, err)
		}
	}
	return nil
}

func unsupported(t *testing.T, err error) error {
	t.Helper()
	if !errors.Is(err, value.ErrUnsupported) {
		t.Errorf("%v does not wrap ErrUnsupported", err)
	}
	return err
}

// Go reads all objects that Python wrote.
func TestOpen_TakesWhatPythonWrote(t *testing.T) {
	known := map[string]bool{}
	for name, b := range captures(t) {
		v, err := lifted(b)
		if err == nil {
			err = use(t, v)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for o := range pickle.Each[*pickle.Object](must(t, b)) {
			known[o.Class.Name] = true
		}
	}
	for _, name := range Transforms() {
		if !known[name] {
			t.Errorf("no capture has a %s", name)
		}
	}
}

func must(t *testing.T, b []byte) any {
	tree, err := pickle.Unmarshal(b, anyName, pickle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// hostile are values that no attribute has, or no attribute of a good object.
func hostile() []any {
	self := &value.Record{Class: value.Named("torchvision.transforms.transforms.Compose")}
	d := new(value.Dict)
	d.Set("transforms", []any{self})
	d.Set("_modules", d)
	self.State = d
	return []any{
		nil, true, int64(0), int64(-1), int64(1 << 62), 0.5, -1e300, math.NaN(), math.Inf(1), "", "x",
		[]byte{1}, []any{}, []any{int64(1)},
		[]any{int64(1), int64(2), int64(3)}, []any{math.NaN(), 1e308}, []any{"x", nil},
		value.Tuple{int64(1 << 24), int64(1 << 24)}, slices.Repeat([]any{int64(1)}, 5000),
		self, d, new(value.Dict), value.Named("builtins.eval"), &value.Record{},
		tensor.New(tensor.Float32, 2), tensor.New(tensor.Uint8, 0, 28, 28), tensor.New(tensor.Int64, 2),
		tensor.New(tensor.Uint8, 2, 0, 28), tensor.New(tensor.Uint8, 2, 3, 28, 28), tensor.Float64, value.Size{1, 2},
		&pickle.Array{DType: "|u1", Shape: []int{2, 3}, Data: []byte{1}},
		&pickle.Array{DType: "<f8", Shape: []int{2}, Data: make([]byte, 16)},
		&pickle.Scalar{DType: "<i8", Data: make([]byte, 8)},
	}
}

// TestOpen_RefusesHostileAttributes puts each hostile value in the place of each attribute, and
// removes each attribute.
func TestOpen_RefusesHostileAttributes(t *testing.T) {
	for name, b := range captures(t) {
		whole, err := lifted(b)
		if err != nil {
			t.Fatal(err)
		}
		for r := range records(whole) {
			d, ok := r.State.(*value.Dict)
			if !ok {
				continue
			}
			for k, good := range d.All() {
				if k != "_modules" && strings.HasPrefix(k.(string), "_") {
					continue // an attribute of nn.Module, which Go ignores
				}
				for _, bad := range hostile() {
					d.Set(k, bad)
					use(t, whole)
				}
				d.Set(k, good)
				without := new(value.Dict)
				for other, v := range d.All() {
					if other != k {
						without.Set(other, v)
					}
				}
				r.State = without
				use(t, whole)
				r.State = d
			}
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// records yields all records in a value.
func records(v any) func(yield func(*value.Record) bool) {
	return func(yield func(*value.Record) bool) {
		switch v := v.(type) {
		case *value.Record:
			if yield(v) {
				records(v.State)(yield)
			}
		case *value.Dict:
			for _, item := range v.All() {
				records(item)(yield)
			}
		case []any:
			for _, item := range v {
				records(item)(yield)
			}
		}
	}
}

// object is an object of a class of torchvision's.
func object(class string, pairs ...any) *value.Record {
	return &value.Record{Class: value.Named(class), State: pickle.NewDict(pairs...)}
}

// Go refuses the transforms that it does differently from Python, or not at all, before it loads
// anything. The text says what to do.
func TestCheck_SaysWhatGoDoesNot(t *testing.T) {
	v1 := func(name string, pairs ...any) *value.Record {
		return object("torchvision.transforms.transforms."+name, pairs...)
	}
	v2 := func(name string, pairs ...any) *value.Record {
		return object("torchvision.transforms.v2._geometry."+name, pairs...)
	}
	all := func(ts ...any) *value.Record { return v1("Compose", "transforms", ts) }
	mode := func(m string) *value.Record {
		return &value.Record{Class: value.Named("torchvision.transforms.functional.InterpolationMode"),
			Args: value.Tuple{m}}
	}
	resize := func(size any, m string) *value.Record {
		return v1("Resize", "size", size, "max_size", nil, "interpolation", mode(m), "antialias", true)
	}
	toTensor, toImage := v1("ToTensor"), object("torchvision.transforms.v2._type_conversion.ToImage")
	normal := func(mean, std any) *value.Record { return v1("Normalize", "mean", mean, "std", std) }
	three := value.Tuple{0.1, 0.2, 0.3}
	for _, c := range []struct {
		transform any
		want      string
	}{
		{v1("GaussianBlur"),
			"transform transforms.GaussianBlur is not supported by Go, which supports CenterCrop, ColorJitter,"},
		{value.Named("__main__.double"), "transform __main__.double is not supported by Go"},
		{object("__main__.Resize"), "transform __main__.Resize is not supported by Go"},
		{all(resize(int64(20), "bilinear")),
			"samples are Pillow images, which PyTorch cannot batch: end the transform with ToTensor()"},
		{nil, "samples are Pillow images"},
		{all(resize(int64(20), "hamming"), toTensor),
			`transforms.Resize: interpolation="hamming", Go supports only nearest,`},
		{all(toTensor, resize(int64(20), "bilinear")),
			"transforms.Resize: Go applies it to bytes only: put it before the conversion to float32"},
		{all(toTensor, toTensor), "transforms.ToTensor: input is already a tensor"},
		{all(normal(three, three)), "input is not float32: put ToTensor or ToDtype(torch.float32, scale=True) " +
			"before it"},
		{all(toTensor, normal(three, value.Tuple{1.0, 0.0, 1.0})), "standard deviation is 0"},
		{all(toTensor, normal(value.Tuple{1.0, 1.0}, three)), "mean has 2 numbers, want 3, one per channel"},
		{all(toTensor, normal(three, three), v1("CenterCrop", "size", value.Tuple{int64(2), int64(2)})),
			"Go draws on bytes only: put it before"},
		{all(toImage, v2("Resize", "size", []any{int64(9)}, "interpolation", "nearest", "antialias", true)),
			"Go samples tensors like NEAREST_EXACT"},
		{all(toImage, v2("Resize", "size", []any{int64(9)}, "interpolation", "bilinear", "antialias", false)),
			"antialias=False is not supported"},
		{all(v1("Resize", "size", int64(9), "max_size", int64(20), "interpolation", mode("bilinear")),
			toTensor), "max_size=20 is not supported by Go"},
		{all(toImage, object("torchvision.transforms.v2._misc.ToDtype", "dtype", tensor.Float16, "scale",
			true)), "output dtype is torch.float16, Go supports only float32, from bytes"},
		{all(v1("ColorJitter", "brightness", value.Tuple{0.5, 1.0}, "contrast", nil, "saturation", nil, "hue",
			nil), toTensor), "Go supports only ranges around 1"},
		{all(v1("RandomHorizontalFlip", "p", 1.5), toTensor), "p is 1.5, want a probability"},
		{all(v1("RandomHorizontalFlip"), toTensor),
			"attribute p is missing: this version of torchvision is not supported"},
	} {
		check(t, object("torchvision.datasets.folder.ImageFolder", "transform", c.transform, "samples",
			[]any{}, "loader", value.Named("torchvision.datasets.folder.default_loader")), c.want)
	}
	folder := func(sample, loader, target any) *value.Record {
		return object("torchvision.datasets.folder.ImageFolder", "transform", toTensor, "samples",
			[]any{sample}, "loader", loader, "target_transform", target)
	}
	loader := value.Named("torchvision.datasets.folder.default_loader")
	check(t, folder(value.Tuple{"a.jpg", int64(0)}, value.Named("PIL.Image.open"), nil),
		"loader=PIL.Image.open, Go supports only torchvision's default_loader")
	check(t, folder(value.Tuple{"a.bmp", int64(0)}, loader, nil),
		`file "a.bmp" is not .jpg, .jpeg or .png`)
	check(t, folder(value.Tuple{"a.jpg", int64(0)}, loader, value.Named("__main__.double")),
		"target_transform=__main__.double, Go supports only int,")
}

// check wants both Open and Check to refuse an object.
func check(t *testing.T, r *value.Record, want string) {
	t.Helper()
	if _, err := Open(r); err == nil || !strings.Contains(unsupported(t, err).Error(), want) {
		t.Errorf("Open: %v, not %s", err, want)
	}
	if err := Check(raw(r).(*pickle.Object)); err == nil || !strings.Contains(unsupported(t, err).Error(), want) {
		t.Errorf("Check: %v, not %s", err, want)
	}
}

// raw returns the form of a record in a pickle.
func raw(v any) any {
	switch v := v.(type) {
	case *value.Record:
		return &pickle.Object{Class: v.Class, Args: v.Args, State: raw(v.State)}
	case *value.Dict:
		d := new(value.Dict)
		for k, item := range v.All() {
			d.Set(k, raw(item))
		}
		return d
	case []any:
		list := new(pickle.List)
		for _, item := range v {
			list.Items = append(list.Items, raw(item))
		}
		return list
	case tensor.DType:
		return value.Named("torch." + v.String())
	}
	return v
}

// Gather makes the same samples as Get, also of tensors that are views.
func TestPictures_GatherWhatTheyGet(t *testing.T) {
	pixels := tensor.New(tensor.Uint8, 8, 6, 7)
	for i := range tensor.Data[uint8](pixels) {
		tensor.Data[uint8](pixels)[i] = uint8(i)
	}
	every := pixels.Slice(0, 0, 8, 2)
	for _, transform := range []*value.Record{
		object("torchvision.transforms.transforms.ToTensor"), object("torchvision.transforms.transforms.PILToTensor"),
		object("torchvision.transforms.v2._container.Compose", "transforms", []any{
			object("torchvision.transforms.v2._geometry.RandomCrop", "size", int64(4), "padding", nil,
				"pad_if_needed", false, "fill", int64(0), "padding_mode", "constant"),
			object("torchvision.transforms.v2._type_conversion.ToImage"),
		}),
	} {
		ds, err := Open(object("torchvision.datasets.mnist.MNIST", "data", every, "targets",
			tensor.FromSlice([]int64{3, 1, 4, 1}, 4), "transform", transform))
		if err != nil {
			t.Fatal(err)
		}
		first, err := ds.Get(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		into := data.Batch{tensor.New(first[0].DType(), append([]int{3}, first[0].Shape()...)...),
			tensor.New(tensor.Int64, 3)}
		at := func(i int) context.Context {
			return data.WithSample(context.Background(), data.Info{Workers: 1, Seed: 5}, i)
		}
		if err := ds.(data.Gatherer).Gather(at(0), []int{3, 0, 2}, into); err != nil {
			t.Fatal(err)
		}
		for k, i := range []int{3, 0, 2} {
			want, err := ds.Get(at(i), i)
			if err != nil {
				t.Fatal(err)
			}
			if !tensor.Equal(into[0].Select(0, k), want[0]) || tensor.Data[int64](into[1])[k] != int64(want[1].Item()) {
				t.Errorf("row %d of %s is not sample %d", k, transform.Class, i)
			}
		}
		for _, i := range []int{-1, 4} {
			if _, err := ds.Get(context.Background(), i); err == nil ||
				!strings.Contains(err.Error(), "out of range, want less than 4") {
				t.Errorf("sample %d: %v", i, err)
			}
		}
	}
}

func FuzzObject(f *testing.F) {
	for _, b := range captures(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := lifted(b); err == nil {
			use(t, v)
		}
	})
}
