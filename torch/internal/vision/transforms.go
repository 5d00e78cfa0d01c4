package vision

import (
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// A builder appends the steps of the transform that f reads to the route r. If Go does not
// support the transform, it sets f.err.
type builder func(f *fields, r *route)

// transforms maps the supported transforms of torchvision to their builders. Class names are the
// same in v1 and v2. The table includes functions that scripts use in place of classes.
var transforms map[string]builder

func init() {
	transforms = map[string]builder{
		"Compose": compose, "Sequential": sequential, "RandomApply": randomApply, "Identity": identity,
		"ImageClassification": imageClassification,

		"ToTensor": toTensor, "to_tensor": toTensor,
		"PILToTensor": pilToTensor, "pil_to_tensor": pilToTensor,
		"ToImage": toImage, "to_image": toImage, "ToPureTensor": toPureTensor,
		"ToDtype": toDType, "ConvertImageDtype": convertImageDType,
		"Normalize": normalize,

		"Resize": resize, "CenterCrop": centerCrop, "RandomCrop": randomCrop, "RandomResizedCrop": randomResizedCrop,
		"RandomHorizontalFlip": flip(true), "RandomVerticalFlip": flip(false), "hflip": alwaysFlip(true),
		"vflip": alwaysFlip(false),
		"Pad":   pad, "RandomRotation": randomRotation, "RandomAffine": randomAffine,

		"Grayscale": grayscale, "RandomGrayscale": randomGrayscale, "ColorJitter": colorJitter,
		"RandomErasing": randomErasing,
	}
}

// These are the modules of the two generations of transforms.
const (
	v1Module = "torchvision.transforms.transforms"
	v2Module = "torchvision.transforms.v2."
)

// isV2 reports whether the class of the object belongs to transforms v2.
func (f *fields) isV2() bool { return strings.HasPrefix(f.of.Class.Module, v2Module) }

// isTorchvision reports whether a class is torchvision's own, rather than a class of a script with
// the same name.
func isTorchvision(g value.Global) bool {
	switch g.Module {
	case v1Module, "torchvision.transforms._presets", "torchvision.transforms.functional":
		return true
	case "torch.nn.modules.container":
		return g.Name == "Sequential"
	case "torch.nn.modules.linear":
		return g.Name == "Identity"
	}
	return strings.HasPrefix(g.Module, v2Module)
}

// Transforms returns the names of the classes that [Steps] supports, sorted.
func Transforms() []string {
	names := slices.Sorted(maps.Keys(transforms))
	return slices.DeleteFunc(names, func(n string) bool { return n[0] >= 'a' }) // functions
}

func knownNames() string { return strings.Join(Transforms(), ", ") }

// compose is the builder of Compose, which applies its inner transforms in order.
func compose(f *fields, r *route) { f.addAll(r, f.innerTransforms()) }

// innerTransforms returns the transforms within a transform: a list attribute, or an
// nn.ModuleList, which is registered as a module and not stored as an attribute. It refuses a
// transform without them: see [fields.refuse].
func (f *fields) innerTransforms() []any {
	v, ok := f.of.Attr("transforms")
	if modules, is := f.optionalAttr("_modules").(*value.Dict); is && !ok {
		v, ok = modules.Get("transforms")
	}
	if list, is := v.(*value.Record); is && list.Class == value.Named("torch.nn.modules.container.ModuleList") {
		inner := &fields{of: list}
		items := inner.submodules()
		f.err = firstError(f.err, inner.err)
		return items
	}
	items, is := listOf(v)
	if !ok || !is {
		f.refuse("transforms is %s, want a list", showValue(v))
	}
	return items
}

// submodules returns the submodules of an nn.Module in order. It refuses an object without them:
// see [fields.refuse].
func (f *fields) submodules() (items []any) {
	modules, ok := f.get("_modules").(*value.Dict)
	if !ok {
		f.refuse("it has no attribute _modules")
	}
	for _, m := range modules.All() {
		items = append(items, m)
	}
	return items
}

// addAll appends the steps of several transforms to r. It sets f.err at the first one that Go
// does not support, and if there are more than 1024.
func (f *fields) addAll(r *route, items []any) {
	if len(items) > mostSteps {
		f.refuse("it has %d transforms, want at most %d", len(items), mostSteps)
	}
	for _, t := range items {
		if f.err == nil {
			f.err = r.add(t)
		}
	}
}

// sequential is the builder of nn.Sequential, which applies its modules in order.
func sequential(f *fields, r *route) { f.addAll(r, f.submodules()) }

func identity(*fields, *route) {}

// randomApply is the builder of RandomApply, which applies the inner transforms with a
// probability. It refuses inner transforms that change the stage or the number of channels,
// because all images of a batch must have the same form.
func randomApply(f *fields, r *route) {
	p := f.readProbability("p")
	inner := &route{now: r.now, channels: r.channels, last: r.last, depth: r.depth}
	f.addAll(inner, f.innerTransforms())
	if f.err == nil && (inner.now != r.now || inner.channels != r.channels || inner.made != r.made ||
		r.now == numbers && !equalConversion(inner.last, r.last)) {
		f.refuse("it changes the layout, channel count or dtype of only some images")
	}
	r.appendStep(f, image.RandomApply(p, inner.steps...))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// imageClassification is the builder of the preset that weights.transforms() returns: a resize,
// a crop, and a normalization.
func imageClassification(f *fields, r *route) {
	resized := &fields{of: f.withAttrs("size", f.get("resize_size"), "interpolation", f.get("interpolation"),
		"antialias", f.optionalAttr("antialias"))}
	resize(resized, r)
	cropped := &fields{of: f.withAttrs("size", f.get("crop_size"))}
	centerCrop(cropped, r)
	if r.now != numbers {
		r.convert(divided)
	}
	normalize(f, r)
	f.err = firstError(f.err, resized.err, cropped.err)
}

// withAttrs returns an object of the same class with only the given attributes: alternating
// names and values.
func (f *fields) withAttrs(pairs ...any) *value.Record {
	d := new(value.Dict)
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i], pairs[i+1])
	}
	return &value.Record{Class: f.of.Class, State: d}
}
