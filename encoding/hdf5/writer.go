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

// Writer writes an HDF5 file. [Create] returns a Writer of a new file, which appears under its name
// only after [Writer.Close]. [Append] returns a Writer that adds to an existing file. A Writer and
// its data sets must not be used from several goroutines at once.
type Writer struct {
	sink
	path     string
	file     *safefile.Replacement // new file; nil in append mode
	old      *appended             // existing file; nil for a new one
	datasets map[string]*Output
	groups   map[string]bool              // groups created explicitly
	attrs    map[string]map[string][]byte // encoded attributes, by object path and key
}

// target is the random-access destination of a [Writer]: a file, or the memory of [Encode].
type target interface {
	io.WriterAt
	Truncate(size int64) error
}

// sink writes to the end of a file. After the first error, which is in err, its methods write
// nothing.
type sink struct {
	to   target
	tree tree  // only its size is used, as the next free address
	err  error // first error; returned by Close
}

// Options specifies how the elements of a data set are stored. The zero value is a contiguous,
// uncompressed layout.
type Options struct {
	// Chunk is the shape of a chunk. Chunks are compressed independently. If Chunk is nil and
	// another option requires chunks, the package chooses a shape of about 1 MiB.
	Chunk []int
	// Shuffle transposes the bytes of the elements, so that all first bytes come first, then all
	// second bytes, and so on. This improves the compression ratio.
	Shuffle bool
	// Gzip is the compression level, which must be from 1 to 9, or 0 for no gzip compression.
	Gzip int
	// MaxShape is the maximum size of each dimension for [Output.Resize] and [Output.Append]. It is
	// stored in the file. A dimension may be [Unlimited]. If MaxShape is nil, the data set cannot
	// grow.
	MaxShape []int
	// LZF compresses with h5py's lzf filter, which is faster than gzip but compresses less. LZF and
	// Gzip must not be combined.
	LZF bool
}

// Create returns a [Writer] for a new file. The caller must call [Writer.Close], which renames
// the file to path, or [Writer.Discard], which removes it. The error is the error of creating a
// temporary file in the same directory.
func Create(path string) (*Writer, error) {
	f, err := safefile.NewReplacement(path)
	if err != nil {
		return nil, err
	}
	w := newWriter(f, source{f, superblockSize})
	w.file, w.path = f, path
	return w, nil
}

// newWriter returns a [Writer] that writes to the target from address from.size on. from reads the
// same file.
func newWriter(to target, from source) *Writer {
	return &Writer{sink: sink{to: to, tree: tree{source: from}},
		datasets: map[string]*Output{}, groups: map[string]bool{}, attrs: map[string]map[string][]byte{}}
}

// Dataset creates a data set filled with zeros, and the groups in its path that do not exist yet.
// The error wraps [ErrName] if the name is malformed or exists, [ErrShape] if a shape is invalid,
// and [ErrUnsupported] if the options are invalid or the existing group cannot get new members; see
// [Append].
func (w *Writer) Dataset(name string, dt tensor.DType, shape []int, o Options) (*Output, error) {
	d := &Output{w: &w.sink, o: o, Dataset: Dataset{tree: &w.tree, kind: datatype{dtype: dt, size: dt.Size()},
		shape: slices.Clone(shape)}}
	if err := w.add(name, d); err != nil {
		return nil, fmt.Errorf("write %s: data set %q: %w", w.path, name, err)
	}
	return d, nil
}

// add allocates a data set and registers it under its name. It returns the same errors as
// [Writer.Dataset], without the name and the path of the file.
func (w *Writer) add(name string, d *Output) error {
	err := w.checkName(name)
	if err == nil {
		err = d.planLayout()
	}
	if err == nil {
		w.datasets[name] = d
	}
	return err
}

// Open opens a data set for writing, which must have been created by [Writer.Dataset] or have
// existed before [Append]. The error wraps [ErrName] if there is none. It wraps [ErrUnsupported] if
// the data set cannot be modified in place: an existing data set must be chunked, must contain
// little-endian numbers, and must use no filters other than shuffle, gzip and lzf. If h5py created
// its chunk index with libver="latest", the index is replaced by the older B-tree of version 1,
// which all versions of HDF5 can read and write.
func (w *Writer) Open(name string) (*Output, error) {
	d, err := w.datasets[name], error(nil)
	switch {
	case d != nil:
	case w.old != nil:
		d, err = w.old.openDataset(w, name)
	default:
		err = fmt.Errorf("%w; create it with Dataset", ErrName)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: data set %q: %w", w.path, name, err)
	}
	return d, nil
}

// Group creates a group if it does not exist. It is only needed for empty groups, because
// [Writer.Dataset] creates the groups in its path. It returns the same errors as [Writer.Dataset].
func (w *Writer) Group(name string) error {
	err := checkPath(name)
	if err == nil && w.old != nil {
		if _, there := w.old.file.groups[name]; there {
			return nil
		}
		err = w.old.checkName(name)
	}
	for other := range w.datasets {
		if err == nil && isWithin(name, other) {
			err = fmt.Errorf("%w: data set %q exists", ErrName, other)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: group %q: %w", w.path, name, err)
	}
	w.groups[name] = true
	return nil
}

// checkName returns an error that wraps [ErrName] if the path of a new data set is malformed, or
// conflicts with an existing data set or group.
func (w *Writer) checkName(name string) error {
	for other := range w.datasets {
		if isWithin(name, other) || isWithin(other, name) {
			return fmt.Errorf("%w: %q exists", ErrName, other)
		}
	}
	for other := range w.groups {
		if isWithin(other, name) {
			return fmt.Errorf("%w: group %q exists", ErrName, other)
		}
	}
	if err := checkPath(name); err != nil || w.old == nil {
		return err
	}
	if _, there := w.old.file.groups[name]; there {
		return fmt.Errorf("%w: group %q exists", ErrName, name)
	}
	return w.old.checkName(name)
}

// isWithin reports whether the path name equals other or is below it.
func isWithin(name, other string) bool { return name == other || strings.HasPrefix(name, other+"/") }

// checkPath returns an error that wraps [ErrName] if name is not a valid path: an element is
// empty or ".", contains NUL, or has more than 32 KiB.
func checkPath(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || strings.ContainsRune(part, 0) || len(part) > maxName {
			return fmt.Errorf("%w: %q", ErrName, name)
		}
	}
	return nil
}

// maxName is the maximum length in bytes of a path element.
const maxName = 1 << 15

// append writes b at the end of the file and returns its address. It stores an error in w.err.
func (w *sink) append(b []byte) (address uint64) {
	address = uint64(w.tree.size)
	w.writeAt(address, b)
	w.tree.size += int64(len(b))
	return address
}

// reserveBytes allocates n zero bytes at the end of the file, with the alignment of tensors, and
// returns their address. It stores an error in w.err.
func (w *sink) reserveBytes(n int) (address uint64) {
	const alignment = 64
	w.tree.size = (w.tree.size + alignment - 1) / alignment * alignment
	address = uint64(w.tree.size)
	w.tree.size += int64(n)
	if w.err == nil {
		w.err = w.to.Truncate(w.tree.size)
	}
	return address
}

// writeAt writes b at an address. It stores an error in w.err, and is a no-op after an error.
func (w *sink) writeAt(address uint64, b []byte) {
	if w.err == nil {
		_, w.err = w.to.WriteAt(b, int64(address))
	}
}

// Close writes the headers and links of the data sets. It then renames a new file to its final
// name, or commits the additions to an existing file.
//
// Close returns the first error of the Writer. After an error, a new file is removed, and an
// existing file is unchanged. The exception is an error while Close overwrites existing headers:
// each data set and each group is then in either its old or its new state.
func (w *Writer) Close() error {
	if w.old != nil {
		return w.closeOld()
	}
	if err := w.writeFile(); err != nil {
		return fmt.Errorf("write %s: %w", w.path, errors.Join(err, w.file.Discard()))
	}
	return w.file.Commit()
}

// writeFile writes the groups, the object headers and the superblock of a new file. It returns
// the first error of the Writer.
func (w *Writer) writeFile() error {
	root := w.writeGroup("")
	w.writeAt(0, appendSuperblock(nil, root, uint64(w.tree.size)))
	return w.attributeError()
}

// attributeError returns the first error of the Writer, or nil. Attributes of an object that was
// not created are an error that wraps [ErrName]. It must be called after all objects have been
// written.
func (w *Writer) attributeError() error {
	for name := range w.attrs {
		w.err = cmp.Or(w.err, fmt.Errorf("%w: attributes of %q, which does not exist", ErrName, name))
	}
	return w.err
}

// Discard removes a new file, or restores an existing file that [Append] opened. It is a no-op
// after [Writer.Close], so it may be deferred.
func (w *Writer) Discard() error {
	if w.old != nil {
		return w.old.truncateAndClose()
	}
	return w.file.Discard()
}

// writeGroup writes the headers of a group and its members, and returns the address of the
// group's header. prefix is the path of the group with a trailing slash, or empty for the root
// group. It stores an error in w.err.
func (w *Writer) writeGroup(prefix string) uint64 {
	members := w.writeMembers(prefix, w.newPaths())
	var h headerWriter
	h.add(msgLinkInfo, linkInfoMessage())
	h.add(msgGroupInfo, groupInfoMessage())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		h.add(msgLink, linkMessage(name, members[name]))
	}
	w.addAttrs(&h, strings.TrimSuffix(prefix, "/"))
	return w.append(h.encodeHeader())
}

// writeMembers writes the objects among names with the given path prefix. names must be sorted.
// It returns the header addresses of the direct members, by name, and stores an error in w.err.
func (w *Writer) writeMembers(prefix string, names []string) map[string]uint64 {
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
			members[member] = w.writeGroup(prefix + member + "/")
		} else {
			members[member] = d.writeDataset(w, name)
		}
	}
	return members
}

// newPaths returns the paths of all data sets and groups that were created in this Writer. They
// are sorted, because the same content should produce the same file.
func (w *Writer) newPaths() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(w.datasets)), maps.Keys(w.groups))
	slices.Sort(names)
	return names
}

// Save writes tensors to a new file, one data set each. The keys are paths: "train/x" is the data
// set x in the group train. Save writes to a temporary file and renames it to path at the end, so a
// reader never sees a partial file. The error wraps [ErrName], [ErrShape], [ErrUnsupported] or
// [tensor.ErrClosed]; otherwise it is the error of writing.
func Save(path string, tensors map[string]*tensor.Tensor) error {
	return SaveWith(path, tensors, Options{})
}

// SaveWith is like [Save] with the given options for each data set.
func SaveWith(path string, tensors map[string]*tensor.Tensor, o Options) error {
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

// Encode writes the same bytes to w that [Save] writes to a file. It builds the file in memory
// first. The error wraps [ErrName], [ErrShape] or [ErrUnsupported], in which case nothing was
// written; otherwise it is the error of w.
func Encode(w io.Writer, tensors map[string]*tensor.Tensor) error {
	return EncodeWith(w, tensors, Options{})
}

// EncodeWith is like [Encode] with the given options for each data set.
func EncodeWith(w io.Writer, tensors map[string]*tensor.Tensor, o Options) error {
	m := new(memory)
	file := newWriter(m, source{m, superblockSize})
	if err := errors.Join(file.Save(tensors, o), file.writeFile()); err != nil {
		return err
	}
	_, err := w.Write(m.bytes)
	return err
}

// Save writes each tensor to a new data set with the options o. Scalars and empty tensors are
// stored contiguously. The error is one of [Writer.Dataset], wraps [tensor.ErrClosed] if a tensor
// is nil or closed, or is the error of writing.
func (w *Writer) Save(tensors map[string]*tensor.Tensor, o Options) error {
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		if err := foreignTensors.Check(t); err != nil {
			return fmt.Errorf("data set %q: %w", name, err)
		}
		own := o
		if t.Numel() == 0 || t.Dims() == 0 { // chunks are impossible
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
