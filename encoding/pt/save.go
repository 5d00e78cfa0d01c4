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
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Save writes v as torch.save does. torch.load reads the file, also with weights_only=True and with
// mmap=True. v is what Conn.Send of package torch takes: nil, numbers, strings, slices, maps,
// structs, *python.Dict, *tensor.Tensor, *autograd.Param, and such values in one another. A
// map[string]*tensor.Tensor becomes a state dict. torch.load needs weights_only=False for a
// *PackedSequence, as for one of PyTorch's own.
//
// Views of one storage stay views of one storage; Save writes the part of the storage that they
// span. Save writes a temporary file beside path, and renames it to path when it is whole. No
// process may write to the tensors during Save.
//
// A struct becomes a dict of its fields. So does a module, which Load of package torch makes a
// module again. A value in a field or an element of an interface type with methods is written with
// the name of its type, which wire.RegisterType registers. The layers of package nn are registered.
//
// The error wraps ErrUnsupported where a value has no form in Python or could not be loaded again:
// a type in an interface is not registered, two keys are one key in Python, or there are more
// values than Load takes. It wraps tensor.ErrClosed for a closed tensor. Any other error is that of
// writing.
//
// [wire.RegisterType]: https://pkg.go.dev/github.com/shoal-mp/shoal/wire#RegisterType
func Save(path string, v any) error {
	return safefile.Replace(path, func(f *os.File) error { return encode(f, rootOf(path), v) })
}

// Encode writes to w the bytes that Save writes to a file named archive.pt, in one pass. Where the
// error wraps ErrUnsupported, Encode has written nothing. Any other error is that of w.
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
