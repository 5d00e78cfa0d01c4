package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// A Writer writes a file. Create begins a new file, which gets its name when the Writer is closed.
// Append adds to a file that exists. One goroutine at a time may use a Writer and its data sets.
type Writer struct {
	sink
	path     string
	file     *safefile.Replacement // of a new file
	old      *appended             // of a file that is there; nil of a new one
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

// Options says how elements are stored. The zero value stores them in one piece, uncompressed.
type Options struct {
	// Chunk is the shape of the chunks. Each chunk is compressed by itself. If Chunk is nil and
	// another option needs chunks, a chunk is about a mebibyte.
	Chunk []int
	// Shuffle stores the first bytes of all elements, then the second ones and so on, which gzip
	// compresses better.
	Shuffle bool
	// Gzip is the level of compression, from 1 to 9; 0 does not compress.
	Gzip int
	// MaxShape is how large each dimension may become by Resize and Append, now and when the file
	// is opened again. Unlimited is any size. If MaxShape is nil, the data set cannot grow.
	MaxShape []int
	// LZF compresses with h5py's lzf, which is faster than gzip and compresses less. LZF and Gzip
	// exclude each other.
	LZF bool
}

// Create begins a new file. The caller calls Close, which gives the file its name, or Discard,
// which removes it.
func Create(path string) (*Writer, error) {
	f, err := safefile.NewReplacement(path)
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

// Dataset begins a data set of zeros. It makes the groups of the name that do not exist. The error
// wraps ErrName, ErrShape or ErrUnsupported if the name, the shape or the options are malformed. It
// wraps ErrUnsupported if the group can take no new member: see [Append].
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

// Open returns a data set of the file for writing: one that Dataset made, or one that Append found.
// The error wraps ErrName if there is none. It wraps ErrUnsupported if the data set cannot be
// written in place. A data set that Append found can be if it is chunked, has little-endian
// numbers, and uses no filters but shuffle, gzip and lzf. Where h5py made an index of chunks with
// libver="latest", Open changes it to HDF5's older B-tree, which all versions read and write.
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

// Group makes a group if it does not exist. Only an empty group needs it, since Dataset makes the
// groups of its name. The error is that of [Writer.Dataset].
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

// Close writes the headers and links of the data sets. Then a new file gets its name, and a file
// that Append opened has all that was added.
//
// The error is the first one of this Writer. After an error there is no new file, and a file that
// Append opened is unchanged. If the error came while Close replaced headers, each data set and
// each group has either its old state or its new one.
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

// Discard removes a new file, and leaves a file that Append opened as it was. After Close it does
// nothing.
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

// made is the names of what was made, in order: the same content makes the same bytes.
func (w *Writer) made() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(w.datasets)), maps.Keys(w.groups))
	slices.Sort(names)
	return names
}

// Save writes tensors as the data sets of a new file. Names are paths: "train/x" is the data set x
// in the group train. Save writes a temporary file beside path, and renames it to path when it is
// whole. The error wraps ErrName, ErrShape, ErrUnsupported or tensor.ErrClosed, or is the error of
// writing.
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

// Encode writes to w the bytes that Save writes to a file. It builds them in memory before it
// writes. The error wraps ErrName, ErrShape or ErrUnsupported, and nothing is written; or it is the
// error of w.
func Encode(w io.Writer, tensors map[string]*tensor.Tensor, o Options) error {
	m := new(memory)
	file := newWriter(m, source{m, superblockSize})
	if err := errors.Join(file.Save(tensors, o), file.finish()); err != nil {
		return err
	}
	_, err := w.Write(m.bytes)
	return err
}

// Save writes each tensor as a data set with the options o. The error is that of [Writer.Dataset],
// wraps tensor.ErrClosed where a tensor is nil or closed, or is that of writing.
func (w *Writer) Save(tensors map[string]*tensor.Tensor, o Options) error {
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		if err := foreignTensors.Check(t); err != nil {
			return fmt.Errorf("data set %q: %w", name, err)
		}
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
