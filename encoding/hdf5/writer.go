package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/replace"
	"github.com/shoal-mp/shoal/tensor"
)

// A Writer writes a file: a new one, which takes its place when the Writer is closed, or one that
// is there, to which it adds. It, and its data sets, are for one goroutine at a time.
type Writer struct {
	sink
	path     string
	file     *replace.File // of a new file
	old      *appended     // of a file that is there; nil of a new one
	datasets map[string]*Output
	groups   map[string]bool              // that were asked for
	attrs    map[string]map[string][]byte // by name of the object and of the attribute
}

// A target is what a file's bytes are written to, at any place.
type target interface {
	io.WriterAt
	Truncate(size int64) error
}

// A sink is a file to which things are added.
type sink struct {
	to   target
	tree tree  // of no groups; its size is where the next thing goes
	err  error // the first; Close returns it
}

// Options says how elements are stored. The zero value is one piece, as they are.
type Options struct {
	// Chunk is the shape of chunks, of which each is compressed by itself. Where it is nil and
	// another option needs chunks, they are of about a mebibyte.
	Chunk []int
	// Shuffle puts the first bytes of all elements together, then the second ones and so on, which
	// gzip makes more of.
	Shuffle bool
	// Gzip is a level from 1 to 9; 0 does not compress.
	Gzip int
	// MaxShape is how large each dimension may become by Resize and Append, here and for others
	// that open the file later; Unlimited is any size.
	MaxShape []int
	// LZF compresses by h5py's lzf, which is quicker and makes less of it; not with Gzip.
	LZF bool
}

// Create begins a file. The caller calls Close, which makes it, or Discard, which does not.
func Create(path string) (*Writer, error) {
	f, err := replace.Create(path)
	if err != nil {
		return nil, err
	}
	w := newWriter(f, source{f, superblockSize})
	w.file, w.path = f, path
	return w, nil
}

// newWriter writes to what it can read as well, behind what is there.
func newWriter(to target, from source) *Writer {
	return &Writer{sink: sink{to: to, tree: tree{source: from}},
		datasets: map[string]*Output{}, groups: map[string]bool{}, attrs: map[string]map[string][]byte{}}
}

// Dataset begins a data set of zeros, in groups that the slashes of its name make where they are
// not there. The error wraps ErrName, ErrShape or ErrUnsupported where name, shape or options are
// none, and ErrUnsupported where the group is one of a file that is there and cannot take a member:
// see Append.
func (w *Writer) Dataset(name string, dt tensor.DType, shape []int, o Options) (*Output, error) {
	d := &Output{w: &w.sink, o: o, Dataset: Dataset{tree: &w.tree, kind: datatype{dtype: dt, size: dt.Size()},
		shape: slices.Clone(shape)}}
	if err := w.add(name, d); err != nil {
		return nil, fmt.Errorf("write %s: data set %q: %w", w.path, name, err)
	}
	return d, nil
}

// add finds a place for a data set, and gives it its name.
func (w *Writer) add(name string, d *Output) error {
	err := w.checkName(name)
	if err == nil {
		err = d.plan()
	}
	if err == nil {
		w.datasets[name] = d
	}
	return err
}

// Open returns a data set that is in the file, to write it, to Append to it and to Resize it: one
// that was made by Dataset, or one of a file that was there. The error wraps ErrName where there is
// none. It wraps ErrUnsupported where a data set that was there cannot be written in place: only
// chunked ones are, of numbers that are little-endian, with the filters shuffle, gzip and lzf.
// Where libver="latest" has found chunks in another way, they are in HDF5's older tree afterwards,
// which it reads and goes on with.
func (w *Writer) Open(name string) (*Output, error) {
	d, err := w.datasets[name], error(nil)
	switch {
	case d != nil:
	case w.old != nil:
		d, err = w.old.dataset(w, name)
	default:
		err = fmt.Errorf("%w; Dataset makes one", ErrName)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: data set %q: %w", w.path, name, err)
	}
	return d, nil
}

// Group makes a group, which may stay empty, unless it is there; the groups of data sets are made
// by their names. The error is that of Dataset.
func (w *Writer) Group(name string) error {
	err := checkPath(name)
	if err == nil && w.old != nil {
		if _, there := w.old.file.groups[name]; there {
			return nil
		}
		err = w.old.admits(name)
	}
	for other := range w.datasets {
		if err == nil && within(name, other) {
			err = fmt.Errorf("%w: there is the data set %q", ErrName, other)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: group %q: %w", w.path, name, err)
	}
	w.groups[name] = true
	return nil
}

// checkName refuses what is no path, and what is already there as a data set or a group.
func (w *Writer) checkName(name string) error {
	for other := range w.datasets {
		if within(name, other) || within(other, name) {
			return fmt.Errorf("%w: there is %q", ErrName, other)
		}
	}
	for other := range w.groups {
		if within(other, name) {
			return fmt.Errorf("%w: there is the group %q", ErrName, other)
		}
	}
	if err := checkPath(name); err != nil || w.old == nil {
		return err
	}
	if _, there := w.old.file.groups[name]; there {
		return fmt.Errorf("%w: there is the group %q", ErrName, name)
	}
	return w.old.admits(name)
}

// within reports whether a path is another or leads through it.
func within(name, other string) bool { return name == other || strings.HasPrefix(name, other+"/") }

// checkPath refuses what is no path.
func checkPath(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || strings.ContainsRune(part, 0) || len(part) > maxName {
			return fmt.Errorf("%w: %q", ErrName, name)
		}
	}
	return nil
}

// maxName is the longest name in a group.
const maxName = 1 << 15

// append writes b at the end.
func (w *sink) append(b []byte) (address uint64) {
	address = uint64(w.tree.size)
	w.put(address, b)
	w.tree.size += int64(len(b))
	return address
}

// reserve makes room for n bytes of zeros at the end, aligned as tensors are.
func (w *sink) reserve(n int) (address uint64) {
	const alignment = 64
	w.tree.size = (w.tree.size + alignment - 1) / alignment * alignment
	address = uint64(w.tree.size)
	w.tree.size += int64(n)
	if w.err == nil {
		w.err = w.to.Truncate(w.tree.size)
	}
	return address
}

// put writes b at an address.
func (w *sink) put(address uint64, b []byte) {
	if w.err == nil {
		_, w.err = w.to.WriteAt(b, int64(address))
	}
}

// Close writes what says where the data sets are. Then a new file takes its place, and one that was
// there has what was added. The error is the first of all that were met. After it there is no new
// file, and one that was there is as it was, unless a header could not be written: then each data
// set and each group is as it was or as it was to be.
func (w *Writer) Close() error {
	if w.old != nil {
		return w.closeOld()
	}
	if err := w.finish(); err != nil {
		return fmt.Errorf("write %s: %w", w.path, errors.Join(err, w.file.Discard()))
	}
	return w.file.Commit()
}

// finish writes all but the data sets.
func (w *Writer) finish() error {
	root := w.group("")
	w.put(0, appendSuperblock(nil, root, uint64(w.tree.size)))
	return w.attributed()
}

// attributed is the first error, also where attributes are left over that are of nothing.
func (w *Writer) attributed() error {
	for name := range w.attrs {
		w.err = cmp.Or(w.err, fmt.Errorf("%w: there are attributes of %q, and it is not there", ErrName, name))
	}
	return w.err
}

// Discard removes a new file, and leaves one that was there as it was. After Close it does nothing.
func (w *Writer) Discard() error {
	if w.old != nil {
		return w.old.discard()
	}
	return w.file.Discard()
}

// group writes the header of a group, after those of its members.
func (w *Writer) group(prefix string) uint64 {
	members := w.members(prefix, w.made())
	var h headerWriter
	h.add(msgLinkInfo, linkInfo())
	h.add(msgGroupInfo, groupInfo())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		h.add(msgLink, link(name, members[name]))
	}
	w.addAttrs(&h, strings.TrimSuffix(prefix, "/"))
	return w.append(h.finish())
}

// members writes those of names that begin with a prefix, and returns the addresses of what is
// right below it.
func (w *Writer) members(prefix string, names []string) map[string]uint64 {
	members := map[string]uint64{}
	for _, name := range names {
		rest, in := strings.CutPrefix(name, prefix)
		if !in {
			continue
		}
		member, _, nested := strings.Cut(rest, "/")
		if _, done := members[member]; done {
			continue
		}
		if d := w.datasets[name]; nested || d == nil {
			members[member] = w.group(prefix + member + "/")
		} else {
			members[member] = d.finish(w, name)
		}
	}
	return members
}

// made is the names of what was made.
func (w *Writer) made() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(w.datasets)), maps.Keys(w.groups))
}

// Save writes tensors as data sets of a file. Names are paths: a slash makes a group.
func Save(path string, tensors map[string]*tensor.Tensor, o Options) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	defer w.Discard()
	if err := w.Save(tensors, o); err != nil {
		return err
	}
	return w.Close()
}

// Encode writes what Save writes to w, once it is whole in memory. The error is Save's, before
// anything is written, or that of w.
func Encode(w io.Writer, tensors map[string]*tensor.Tensor, o Options) error {
	m := new(memory)
	file := newWriter(m, source{m, superblockSize})
	if err := errors.Join(file.Save(tensors, o), file.finish()); err != nil {
		return err
	}
	_, err := w.Write(m.bytes)
	return err
}

// Save writes tensors as data sets, beside others.
func (w *Writer) Save(tensors map[string]*tensor.Tensor, o Options) error {
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		own := o
		if t.Numel() == 0 || t.Dims() == 0 { // which have no chunks
			own = Options{}
		}
		d, err := w.Dataset(name, t.DType(), t.Shape(), own)
		if err != nil {
			return err
		}
		if err := d.WriteSlab(t, make([]int, t.Dims())...); err != nil {
			return err
		}
	}
	return nil
}
