package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/regular"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [In place]
// An Appender writes behind the end of the file, over nothing that is there: also a chunk that was
// there before, and is full now, has a new place. A header is changed last, when what it will say
// is in the file: the place of the tree of chunks and the shape, in one write where the header is
// in one piece. So a process that is killed has left the file as it was, but for bytes at its end,
// or with what it has added. What other programs know by the address of a header they still find.

// An Appender makes data sets longer that are in a file already. It, and its data sets, are for one
// goroutine at a time.
type Appender struct {
	sink
	f     *os.File
	file  *File
	open  map[uint64]*Output
	begun int64 // the file's size before
}

// Append opens a file whose data sets are to become longer, in place. The caller calls Close, which
// makes them so, or Discard, which leaves the file as it was. Nobody else may write the file
// meanwhile: the error wraps syscall.EWOULDBLOCK where another program has it open by libhdf5, or
// by Append. The error wraps ErrFormat or ErrUnsupported, or is what reading says.
func Append(path string) (*Appender, error) {
	a, err := openAppender(path)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", path, err)
	}
	return a, nil
}

func openAppender(path string) (*Appender, error) {
	f, err := regular.OpenFile(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	err = sys.LockFile(f)
	var file *File
	if err == nil {
		file, err = open(f)
	}
	if err == nil {
		err = file.appendable()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	size := file.tree.size
	return &Appender{sink{to: f, tree: tree{source: source{f, size}}}, f, file, map[uint64]*Output{}, size}, nil
}

// extend says how large the file is now.
func (a *Appender) extend() error {
	s, err := a.file.superblock()
	if err != nil {
		return err
	}
	le.PutUint64(s.bytes[s.endAt:], uint64(a.tree.size))
	if s.version >= 2 {
		sum := superblockSize - checksumSize
		le.PutUint32(s.bytes[sum:], lookup3(s.bytes[:sum]))
	}
	_, err = a.to.WriteAt(s.bytes, 0)
	return err
}

// appendable refuses what would have to be written in other ways.
func (f *File) appendable() error {
	if f.UserBlock > 0 {
		return unsupported("to append behind a block of a user, of %d bytes", f.UserBlock)
	}
	s, err := f.superblock()
	if err != nil {
		return err
	}
	if s.fanout != fanout {
		return unsupported("to append to a file whose trees have %d children", s.fanout)
	}
	if s.extended {
		return unsupported("to append to a file with an extension of its superblock")
	}
	if end := le.Uint64(s.bytes[s.endAt:]); end > uint64(f.tree.size) {
		return malformed("it has %d bytes and says %d", f.tree.size, end)
	}
	return nil
}

// Names returns the names of the data sets, in order.
func (a *Appender) Names() []string { return a.file.Names() }

// Dataset returns a data set, to write it, to Append to it and to Resize it. The error wraps
// ErrName where there is none, and ErrUnsupported where it cannot be written in place: only chunked
// ones are, of numbers that are little-endian, with the filters shuffle, gzip and lzf. Where
// libver="latest" has found chunks in another way, they are in HDF5's older tree afterwards, which
// it reads and goes on with.
func (a *Appender) Dataset(name string) (*Output, error) {
	d, err := a.dataset(name)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %q: %w", a.f.Name(), name, err)
	}
	return d, nil
}

func (a *Appender) dataset(name string) (*Output, error) {
	address := a.file.datasets[name]
	if d := a.open[address]; d != nil {
		return d, nil
	}
	found, err := a.file.Dataset(name)
	if err != nil {
		return nil, err
	}
	switch {
	case found.store.kind != layoutChunked:
		return nil, unsupported("to write what is not in chunks; it was made without a maximum shape")
	case found.kind.swapped:
		return nil, unsupported("to write big-endian numbers")
	}
	level := 0
	for _, f := range found.filters {
		switch {
		case f.id == filterGzip && len(f.values) > 0:
			level = int(f.values[0])
		case f.id == filterChecksum || f.id == filterGzip:
			return nil, unsupported("to write by filter %d", f.id)
		}
	}
	if level > 9 {
		return nil, malformed("gzip of level %d", level)
	}
	if found.chunks == nil {
		found.chunks = map[int]stored{}
	}
	for i, c := range found.chunks {
		c.fixed = true
		found.chunks[i] = c
	}
	d := &Output{Dataset: *found, w: &a.sink}
	d.tree = &a.tree
	a.open[address] = d
	return d, nil
}

// Close writes where the data sets are now, and closes the file. After an error the file is as it
// was, unless a header could not be written: then each data set is as it was or as it was to be.
func (a *Appender) Close() error {
	var patches []patch
	for address, d := range a.open {
		p, err := a.repoint(address, d, d.chunkTree())
		patches, a.err = append(patches, p...), cmp.Or(a.err, err)
	}
	if a.err == nil {
		a.err = a.f.Sync()
	}
	if a.err == nil {
		a.err = a.extend()
	}
	if a.err != nil {
		return fmt.Errorf("append to %s: %w", a.f.Name(), errors.Join(a.err, a.Discard()))
	}
	for _, p := range patches {
		if _, err := a.to.WriteAt(p.bytes, int64(p.address)); err != nil {
			return fmt.Errorf("append to %s: %w", a.f.Name(), errors.Join(err, a.f.Close()))
		}
	}
	if err := errors.Join(a.f.Sync(), a.f.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", a.f.Name(), err)
	}
	return nil
}

// Discard leaves the file as it was. After Close it does nothing.
func (a *Appender) Discard() error {
	err := a.f.Truncate(a.begun)
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return errors.Join(err, a.f.Close())
}
