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

// Save writes v to a file like torch.save. torch.load can read the file, also with
// weights_only=True and mmap=True. v must have one of the types that Conn.Send of package torch
// supports: nil, numbers, strings, slices, maps, structs, *[python.Dict], *[tensor.Tensor],
// *[autograd.Param], and combinations of them. A map[string]*tensor.Tensor becomes a state dict.
// For a *[PackedSequence], torch.load needs weights_only=False, as it does for PyTorch's own.
//
// Tensors that share a storage share it in the file, too. Save writes only the part of a storage
// that its tensors cover. Save writes to a temporary file and renames it to path at the end, so a
// reader never sees a partial file. The tensors must not be modified during Save.
//
// A struct becomes a dict of its fields, and so does a module. Load of package torch can convert it
// back. A value in a field or an element of an interface type with methods is stored with the name
// of its type, which must be registered with [wire.RegisterType]. The layers of package nn are
// registered.
//
// The error wraps [ErrUnsupported] if a value cannot be represented in Python or could not be
// loaded again: for example, if a type in an interface is not registered, if two keys are equal in
// Python, or if there are more values than [Load] accepts. It wraps [tensor.ErrClosed] if a tensor
// is closed; otherwise it is the error of writing.
//
// [wire.RegisterType]: https://pkg.go.dev/github.com/shoal-mp/shoal/wire#RegisterType
func Save(path string, v any) error {
	return safefile.Replace(path, func(f *os.File) error { return encode(f, rootOf(path), v) })
}

// Encode writes to w the bytes that [Save] writes to a file named archive.pt, in one pass. If
// the error wraps [ErrUnsupported] or [tensor.ErrClosed], nothing was written; otherwise it is
// the error of w.
func Encode(w io.Writer, v any) error { return encode(w, archiveName, v) }

func encode(w io.Writer, root string, v any) error {
	s := newSaver()
	tree, err := s.lowerValue(v)
	if err != nil {
		return err
	}
	b, err := pickle.Marshal(tree, protocol)
	if err != nil {
		return err
	}
	if _, err := pickle.Unmarshal(b, permitName, limits); err != nil {
		return fmt.Errorf("%w: the file could not be loaded again: %w", ErrUnsupported, err)
	}
	guarded := tensor.Catch(func() { err = s.write(w, root, b) })
	return errors.Join(err, guarded)
}

// archiveName is the folder name that torch.save uses in a file without a name.
const archiveName = "archive"

// protocol is the pickle protocol that torch.load requires with weights_only=True.
const protocol = 2

// rootOf returns the name of the folder in the archive: the base name of the file without its
// extension, or archiveName if nothing remains.
func rootOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if name == "" {
		return archiveName
	}
	return name
}

// write writes the archive to to, with pickled as data.pkl. root is the name of its folder.
func (s *saver) write(to io.Writer, root string, pickled []byte) error {
	w := &writer{root: root}
	w.zip = zip.NewWriter(&w.out)
	w.out.w = to
	w.add("data.pkl", pickled)
	w.add("byteorder", []byte("little"))
	for i, o := range s.order {
		b, err := o.savedBytes()
		if err != nil {
			return err
		}
		w.add("data/"+strconv.Itoa(i), b)
	}
	w.add("version", []byte("3\n"))
	w.add(".data/serialization_id", fmt.Appendf(nil, "%020d%020d", w.sizes, w.sum.Sum32()))
	return errors.Join(w.err, w.zip.Close())
}

// writer writes the entries of an archive. After the first error, which is in err, it writes
// nothing.
type writer struct {
	out   counter
	zip   *zip.Writer
	root  string
	tail  int64 // size in bytes of the data descriptor of the last entry
	sum   sum
	sizes uint64
	err   error // first error
}

// alignment is the alignment in bytes of the contents of each entry, so that storages can be
// mapped.
const alignment = 64

// add writes an entry, named relative to the folder. Its contents are aligned with an extra
// field of the kind that PyTorch uses. It stores an error in w.err.
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

// sum is a checksum over samples of all entries, for the serialization ID. The zero value is the
// sum of no entries.
type sum struct{ crc uint32 }

func (s *sum) add(b []byte) {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
	s.crc = crc32.Update(s.crc, crc32.IEEETable, b[:min(len(b), sampled)])
}

// Sum32 returns the checksum of the entries added so far.
func (s *sum) Sum32() uint32 { return s.crc }

// sampled is the number of bytes of each entry that are added to the sum. The zip format has
// checksums of the whole entries.
const sampled = 4 << 10

// counter is an [io.Writer] that passes bytes to w and counts in n the bytes that w has
// accepted.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
