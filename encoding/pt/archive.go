package pt

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// foreignTensors creates tensors backed by mapped files.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// archive is a zip file as written since PyTorch 1.6. It contains data.pkl, data/<key> for each
// storage, byteorder and version, uncompressed and in a common folder. [openArchive] makes it.
// One goroutine may use it.
type archive struct {
	from    contents
	mapped  foreign.Map[*tensor.Tensor] // nil if the file is read
	entries map[string]safefile.ZipEntry
	root    string
	swapped bool // storages are big-endian
	tally   *safefile.Limit
}

// maxText is the size limit in bytes of the entries version and byteorder.
const maxText = 64

// openArchive reads the zip directory. On success, the archive owns the file and must be closed;
// after an error, the caller keeps the file. The error wraps [ErrFormat] or [ErrUnsupported], or
// is the error of mapping the file.
func openArchive(from contents, o Options) (*archive, error) {
	entries, err := safefile.ReadZip(from, from.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	a := &archive{from: from, entries: entries, tally: o.storageLimit(from.size)}
	if err := a.findRoot(); err != nil {
		return nil, err
	}
	if err := a.checkVersion(); err != nil {
		return nil, err
	}
	if o.Mmap {
		a.mapped, err = foreignTensors.MapFile(from.file)
	}
	return a, err
}

// Close closes the file, or the mapping that owns it. Mapped storages stay valid.
func (a *archive) Close() error {
	if a.mapped != nil {
		return a.mapped.Close()
	}
	return a.from.Close()
}

// findRoot sets a.root to the common folder, which may have any name. The error wraps
// [ErrFormat] if the file does not have one data.pkl, and [ErrUnsupported] for a TorchScript
// program.
func (a *archive) findRoot() error {
	found := 0
	for name := range a.entries {
		root, file, _ := strings.Cut(name, "/")
		switch file {
		case "data.pkl":
			a.root = root
			found++
		case "constants.pkl":
			return fmt.Errorf("%w: a TorchScript program; save its state_dict()", ErrUnsupported)
		}
	}
	if found != 1 {
		return malformed("file has data.pkl %d times, want once", found)
	}
	return nil
}

// checkVersion validates the entries version and byteorder, and sets a.swapped if the storages are
// big-endian. Without byteorder, it assumes little-endian storages. The error wraps [ErrFormat].
func (a *archive) checkVersion() error {
	text, err := a.readText("version")
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 10 {
		return malformed("got version %q, want 1 to 10", text)
	}
	if _, ok := a.entries[a.root+"/byteorder"]; !ok {
		return nil // PyTorch < 2.1: native byte order, assumed to be little-endian
	}
	order, err := a.readText("byteorder")
	if err == nil && order != "little" && order != "big" {
		err = malformed("unsupported byte order %q", order)
	}
	a.swapped = order == "big"
	return err
}

func (a *archive) readText(name string) (string, error) {
	b, err := a.read(name, maxText)
	return strings.TrimSpace(string(b)), err
}

// findEntry returns the entry with the given name, relative to the common folder. The error
// wraps [ErrFormat] if it does not exist or is compressed.
func (a *archive) findEntry(name string) (safefile.ZipEntry, error) {
	e, ok := a.entries[a.root+"/"+name]
	if !ok {
		return e, malformed("missing %.100q", name)
	}
	if e.CompressedSize64 != e.UncompressedSize64 {
		return e, malformed("%.100q is compressed, which torch.save does not do", name)
	}
	return e, nil
}

// read reads an entry, named relative to the common folder, of at most limit bytes. The error
// wraps [ErrFormat] if it is larger or damaged.
func (a *archive) read(name string, limit int64) ([]byte, error) {
	e, err := a.findEntry(name)
	if err != nil {
		return nil, err
	}
	if e.UncompressedSize64 > uint64(limit) {
		return nil, malformed("%q has %d bytes", name, e.UncompressedSize64)
	}
	b := make([]byte, e.UncompressedSize64)
	return b, a.fill(e, b)
}

// fill reads an entry into b, which must have its size, and verifies its checksum. The error
// wraps [ErrFormat].
func (a *archive) fill(e safefile.ZipEntry, b []byte) error {
	r, err := e.Open()
	if err != nil {
		return fmt.Errorf("%w: %.100q: %w", ErrFormat, e.Name, err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, b); err != nil {
		return fmt.Errorf("%w: %.100q: %w", ErrFormat, e.Name, err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF { // zip verifies the checksum at EOF
		return fmt.Errorf("%w: %.100q: %w", ErrFormat, e.Name, err)
	}
	return nil
}

func (a *archive) load(o Options) (any, error) {
	b, err := a.read("data.pkl", limits.Bytes)
	if err != nil {
		return nil, err
	}
	tree, err := pickle.Unmarshal(b, permitName, limits)
	if err != nil {
		return nil, convertError(err)
	}
	return liftTree(tree, a, o)
}

// openStorage implements [container]. It maps a storage if possible, and reads it otherwise. The
// error wraps [ErrFormat] if the storage is missing or has another size, and [ErrLimit] if it
// exceeds the limit.
func (a *archive) openStorage(key string, dt tensor.DType, size int64) (*tensor.Tensor, error) {
	e, err := a.findEntry("data/" + key)
	if err != nil {
		return nil, err
	}
	if e.UncompressedSize64 != uint64(size) {
		return nil, malformed("got storage %q of %d bytes, want %d", key, e.UncompressedSize64, size)
	}
	if a.mapped != nil && !a.swapped && e.Offset%int64(max(dt.Size(), 8)) == 0 {
		if err := a.tally.Map(size); err != nil {
			return nil, err
		}
		return a.mapped.Storage(e.Offset, size)
	}
	if err := a.tally.Add(size); err != nil {
		return nil, err
	}
	t := tensor.Empty(tensor.Uint8, int(size))
	if err := a.fill(e, tensor.Bytes(t)); err != nil {
		return nil, err
	}
	if a.swapped {
		numpy.Swap(dt.String(), tensor.Bytes(t))
	}
	return t, nil
}
