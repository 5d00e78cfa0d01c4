package tensor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A fileMap implements foreign.Map.
type fileMap struct {
	hold *Tensor // empty tensor that keeps the mapping
	file *file
}

// mapFile implements MapFile of package foreign: it maps f privately, so that writes do not go to
// the file. The Map owns f, and the caller must close the Map. If there is an error, the caller
// still owns f.
func mapFile(f *os.File) (foreign.Map[*Tensor], error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("map file: %w", err)
	}
	mapped := &file{File: f}
	if err := mapped.mapIn(false, int(info.Size())); err != nil {
		return nil, fmt.Errorf("map file: %w", err)
	}
	return &fileMap{mapped.partTensor(0, 0), mapped}, nil
}

// Storage returns a Uint8 tensor over n bytes of the file, from offset at on. The caller must
// close it. The error wraps ErrLayout if the bytes exceed the file.
func (m *fileMap) Storage(at, n int64) (*Tensor, error) {
	if size := int64(len(m.file.bytes)); at < 0 || n < 0 || at > size || n > size-at {
		return nil, fmt.Errorf("map file: %d bytes at offset %d exceed the file size %d: %w",
			n, at, size, ErrLayout)
	}
	return m.file.partTensor(int(at), int(n)), nil
}

// Close releases the map. The file is unmapped when all tensors in it are closed too.
func (m *fileMap) Close() error { return m.hold.Close() }

// A part is the holder of one of several storages in a file. The last one unmaps the file.
type part struct {
	*file
	ended atomic.Bool
}

func (p *part) releaseMemory() error {
	if p.ended.Swap(true) || p.parts.Add(-1) > 0 {
		return nil
	}
	return p.file.releaseMemory()
}

// partTensor returns a Uint8 tensor over n bytes of the file, from offset at on. The bytes must
// be within the file.
func (f *file) partTensor(at, n int) *Tensor {
	f.parts.Add(1)
	s := new(Storage)
	s.setForeign(&memory{bytes: f.bytes[at : at+n : at+n], lease: &part{file: f}})
	files.registerFile(f, s)
	return contiguous(s, Uint8, []int{n})
}

// mappedFile returns the file that contains the memory; ok is false if the memory is not in a
// file.
func (m *memory) mappedFile() (f *file, ok bool) {
	switch l := m.lease.(type) {
	case *file:
		return l, true
	case *part:
		return l.file, true
	}
	return nil, false
}

// dropPages implements Forget of package foreign: it drops the pages of t from this process's
// memory. It does nothing unless t is contiguous and in a private mapping of a file.
func dropPages(t *Tensor) {
	if f, ok := t.store().mem.Load().mappedFile(); ok && !f.shared && t.IsContiguous() {
		sys.Forget(t.contiguousBytes())
		runtime.KeepAlive(t)
	}
}

// readFileAt implements ReadFileAt of package foreign: it reads the bytes at offset at of f into
// t, which must be contiguous and on the host. The error wraps ErrFile if the file is too short.
func readFileAt(t *Tensor, f *os.File, at int64) error {
	b := Bytes(t)
	sys.Ready(b)
	if _, err := f.ReadAt(b, at); err != nil {
		info, statErr := f.Stat()
		if statErr == nil && info.Size() < at+int64(len(b)) {
			return sizeMismatchOf(f.Name(), info.Size(), at+int64(len(b)), "file was truncated")
		}
		return errors.Join(err, statErr)
	}
	return nil
}
