package files

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// loadHDF5 reads an HDF5 file. Data sets of numbers become tensors, and text attributes of the
// root group metadata. Other attributes, and data sets of text or of unsupported types, become
// others. most limits the memory in bytes, as in [Format].Load.
func loadHDF5(path string, most int64) (c Content, err error) {
	f, err := hdf5.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	f.MaxBytes = most
	if n := f.UserBlock; n > 0 {
		c.Others = append(c.Others, Other{Name: fmt.Sprintf("%d bytes before the file", n)})
	}
	allow, err := limitFunc(path, most)
	if err != nil {
		return c, err
	}
	c.Tensors, c.Meta = Tensors{}, map[string]string{}
	kept := map[string]bool{"": true} // data sets that can be rewritten, and their groups
	for _, name := range f.Names() {
		good, err := c.addDataset(f, name, allow)
		if err != nil {
			return c, fmt.Errorf("read %s: %q: %w", path, name, err)
		}
		for at := len(name); at >= 0; at = strings.LastIndexByte(name[:at], '/') {
			kept[name[:at]] = kept[name[:at]] || good
		}
	}
	for _, name := range f.Groups() {
		if !kept[name] {
			kept[name] = true
			c.Others = append(c.Others, Other{"group " + name, func(w *hdf5.Writer) error { return w.Group(name) }})
		}
	}
	for name, good := range kept {
		attrs, err := f.Attrs(name)
		if errors.Is(err, hdf5.ErrUnsupported) {
			c.Others = append(c.Others, Other{Name: "attributes of " + name})
			continue
		}
		if err != nil {
			return c, err
		}
		for key, v := range attrs {
			c.addAttr(name, key, v, good)
		}
	}
	slices.SortFunc(c.Others, func(a, b Other) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// limitFunc returns a function that must be called with the size of each data set before it is
// read. It returns an error once their total exceeds the limit, because a small file can declare
// many large ones. path is the file, and most the limit as in [Format].Load.
func limitFunc(path string, most int64) (allow func(bytes int64) error, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	return func(bytes int64) error {
		total = min(total+bytes, math.MaxInt64/2)
		return safefile.CheckSize(total, safefile.InflatedSize(info.Size()), most, raise)
	}, nil
}

// addDataset reads a data set into c.Tensors, or into c.Others if it is not of numbers, and
// reports whether it can be written again. It calls allow with the size of a tensor first; see
// [limitFunc].
func (c *Content) addDataset(f *hdf5.File, name string, allow func(bytes int64) error) (good bool, err error) {
	d, err := f.Dataset(name)
	if errors.Is(err, hdf5.ErrText) {
		values, shape, err := f.Strings(name)
		if err != nil && !errors.Is(err, hdf5.ErrUnsupported) {
			return false, err
		}
		text := Other{Name: "text " + name}
		if err == nil {
			text.Keep = func(w *hdf5.Writer) error { return w.Strings(name, values, shape...) }
		}
		c.Others = append(c.Others, text)
		return err == nil, nil
	}
	if errors.Is(err, hdf5.ErrUnsupported) {
		c.Others = append(c.Others, Other{Name: "data set " + name})
		return false, nil
	}
	if err == nil {
		size, bad := d.DType().SizeOf(d.Shape()...)
		err = errors.Join(bad, allow(int64(size)))
	}
	if err == nil {
		c.Tensors[name], err = d.Read()
	}
	return err == nil, err
}

// addAttr adds an attribute of the file, a group or a data set. good reports whether its owner can
// be written again.
func (c *Content) addAttr(name, key string, v any, good bool) {
	if text, ok := v.(string); ok && name == "" {
		c.Meta[key] = text
		return
	}
	o := Other{Name: "attribute " + key}
	if name != "" {
		o.Name += " of " + name
	}
	if good {
		o.Keep = func(w *hdf5.Writer) error { return w.Attr(name, key, v) }
	}
	c.Others = append(c.Others, o)
}

// saveHDF5 writes the tensors, the metadata, and those others that were read from an HDF5 file and
// can be written again. It returns the names of the items that it dropped, or an error that wraps
// [ErrStrict] if items may not be dropped.
func saveHDF5(path string, c Content) (left []string, err error) {
	w, err := hdf5.Create(path)
	if err != nil {
		return nil, err
	}
	defer w.Discard()
	err = w.Save(c.Tensors, hdf5.Options{})
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		err = errors.Join(err, w.Attr("", key, c.Meta[key]))
	}
	for _, o := range c.Others {
		failed := hdf5.ErrUnsupported
		if o.Keep != nil {
			failed = o.Keep(w)
		}
		if errors.Is(failed, hdf5.ErrUnsupported) { // also for an attribute that is too large
			left = append(left, o.Name)
			continue
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, err
	}
	if left, err = c.dropItems(append(left, c.sharedGroups()...)); err != nil {
		return nil, err
	}
	return left, w.Close()
}
