package pt

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/replace"
	"github.com/shoal-mp/shoal/tensor"
)

// Save writes v as torch.save does, so that torch.load reads it, with weights_only=True too, and
// with mmap=True. v is what Conn.Send of package torch takes: nil, numbers, strings, slices, maps,
// structs, *python.Dict, *tensor.Tensor, *autograd.Param, and those in one another; a
// map[string]*tensor.Tensor becomes a state dict. A *PackedSequence is read with weights_only=False
// alone, as one of PyTorch's own is. Views of one storage stay that; of a storage the part is
// written that its tensors span. The file takes its place when it is whole. Nobody may write to the
// tensors meanwhile.
//
// A struct becomes a dict of its fields, a whole module too, which Load of package torch makes a
// module again. What stands in a field or an element that is an interface with methods is written
// with the name of its type, by [wire.RegisterType]; the layers of package nn are registered.
//
// The error wraps ErrUnsupported where a value has no form in Python, or could not be loaded again:
// a type that is not registered in an interface, two keys that are one in Python, more values than
// Load takes. Otherwise it is what writing says.
//
// [wire.RegisterType]: https://pkg.go.dev/github.com/shoal-mp/shoal/wire#RegisterType
func Save(path string, v any) error {
	return replace.Write(path, func(f *os.File) error { return encode(f, rootOf(path), v) })
}

// Encode writes to w what Save writes to "archive.pt", in one pass. The error is Save's, before
// anything is written, or that of w.
func Encode(w io.Writer, v any) error { return encode(w, archiveName, v) }

func encode(w io.Writer, root string, v any) error {
	s := newSaver()
	tree, err := s.lower(v)
	if err != nil {
		return err
	}
	b, err := pickle.Marshal(tree, protocol)
	if err != nil {
		return err
	}
	if _, err := pickle.Unmarshal(b, names, limits); err != nil {
		return fmt.Errorf("%w: it could not be loaded again: %w", ErrUnsupported, err)
	}
	guarded := tensor.Catch(func() { err = s.write(w, root, b) })
	return errors.Join(err, guarded)
}

// archiveName is the folder in what has no name of its own, as torch.save calls it.
const archiveName = "archive"

// protocol is that of the pickle, which torch.load takes for granted with weights_only.
const protocol = 2

// rootOf is the name of the folder in the file: that of the file.
func rootOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if name == "" {
		return archiveName
	}
	return name
}

// write writes the archive.
func (s *saver) write(to io.Writer, root string, pickled []byte) error {
	w := &writer{root: root}
	w.zip = zip.NewWriter(&w.out)
	w.out.w = to
	w.add("data.pkl", pickled)
	w.add("byteorder", []byte("little"))
	for i, o := range s.order {
		b, err := o.bytes()
		if err != nil {
			return err
		}
		w.add("data/"+strconv.Itoa(i), b)
	}
	w.add("version", []byte("3\n"))
	w.add(".data/serialization_id", fmt.Appendf(nil, "%020d%020d", w.sizes, w.sum.Sum32()))
	return errors.Join(w.err, w.zip.Close())
}

// A writer writes the entries of an archive.
type writer struct {
	out   counter
	zip   *zip.Writer
	root  string
	tail  int64 // bytes that will follow the last entry
	sum   sum
	sizes uint64
	err   error // the first
}

// alignment is that of what an entry holds, so that storages can be mapped.
const alignment = 64

// add writes an entry, with an extra field before its content that pads it as PyTorch does.
func (w *writer) add(name string, content []byte) {
	if w.err == nil {
		w.err = w.zip.Flush()
	}
	if w.err != nil {
		return
	}
	name = w.root + "/" + name
	const header, field = 30, 4
	pad := (alignment - (w.out.n+w.tail+header+field+int64(len(name)))%alignment) % alignment
	extra := binary.LittleEndian.AppendUint16([]byte("FB"), uint16(pad))
	extra = append(extra, strings.Repeat("Z", int(pad))...)
	var e io.Writer
	if e, w.err = w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Extra: extra}); w.err == nil {
		_, w.err = e.Write(content)
	}
	if w.tail = 16; len(content) >= math.MaxUint32 { // a checksum and sizes
		w.tail = 24
	}
	w.sum.add(content)
	w.sizes += uint64(len(content))
}

// A sum is a checksum of checksums, to tell files apart by.
type sum struct{ crc uint32 }

func (s *sum) add(b []byte) {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
	s.crc = crc32.Update(s.crc, crc32.IEEETable, b[:min(len(b), sampled)])
}

// Sum32 returns the sum.
func (s *sum) Sum32() uint32 { return s.crc }

// sampled is how much of an entry goes into the sum; all of it is in the archive's own.
const sampled = 4 << 10

// A counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
