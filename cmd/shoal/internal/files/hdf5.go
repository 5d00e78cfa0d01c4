package files

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/hdf5"
)

// loadHDF5 takes text among the attributes of the file for what is said of its tensors. Other attributes are others, and so are data
// sets of text or of what is not read.
func loadHDF5(path string) (c Content, err error) {
	f, err := hdf5.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	attrs, err := f.Attrs("")
	if err != nil {
		return c, err
	}
	c.Tensors, c.Meta = Tensors{}, map[string]string{}
	for key, v := range attrs {
		if text, ok := v.(string); ok {
			c.Meta[key] = text
		} else {
			c.Others = append(c.Others, "attribute "+key)
		}
	}
	for _, name := range f.Names() {
		d, err := f.Dataset(name)
		switch {
		case errors.Is(err, hdf5.ErrText):
			c.Others = append(c.Others, "text "+name)
		case errors.Is(err, hdf5.ErrUnsupported):
			c.Others = append(c.Others, "data set "+name)
		case err != nil:
			return c, err
		default:
			if c.Tensors[name], err = d.Read(); err != nil {
				return c, fmt.Errorf("read %s: %q: %w", path, name, err)
			}
		}
		attrs, err := f.Attrs(name)
		if err != nil {
			return c, err
		}
		for key := range attrs {
			c.Others = append(c.Others, fmt.Sprintf("attribute %s of %s", key, name))
		}
	}
	slices.Sort(c.Others)
	return c, nil
}

func saveHDF5(path string, c Content) (err error) {
	w, err := hdf5.Create(path)
	if err != nil {
		return err
	}
	defer w.Discard()
	err = w.Save(c.Tensors, hdf5.Options{})
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		err = errors.Join(err, w.Attr("", key, c.Meta[key]))
	}
	if err != nil {
		return err
	}
	return w.Close()
}
