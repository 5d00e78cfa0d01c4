package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [In place] A Writer adds to a file behind its end, over nothing that is there: also a chunk
// that was there before, and is full now, has a new place, and so have the links of an older group.
// A header is changed last, when what it will say is in the file: the place of the tree of chunks
// and the shape, or where the links are, in one write where the header is in one piece. So a
// process that is killed has left the file as it was, but for bytes at its end, or with what it has
// added. What other programs know by the address of a header they still find.

// An appended is a file that is there, to which a Writer adds.
type appended struct {
	f     *os.File
	file  *File
	open  map[uint64]*Output  // data sets that were there, by address
	links map[uint64]*linking // of the groups that were there, by address
	begun int64               // the file's size before
}

// Append opens a file that exists, to make its data sets longer and to add new ones, in place. The
// caller calls Close, which makes the changes, or Discard, which leaves the file as it was. No
// other program may write the file before. The error wraps syscall.EWOULDBLOCK if another program
// has the file open by libhdf5 or by Append. It wraps ErrFormat or ErrUnsupported, or is the error
// of reading.
//
// A group of the file takes new members if it has its links in a symbol table (h5py's default), or
// in a header of version 2 (this package's form, and h5py's with libver="latest" for a few
// members). For a group with its links in a heap, or in a header of version 1, the error of
// Writer.Dataset and Writer.Group wraps ErrUnsupported.
func Append(path string) (*Writer, error) {
	w, err := openAppended(path)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", path, err)
	}
	return w, nil
}

func openAppended(path string) (*Writer, error) {
	f, err := safefile.OpenFile(path, os.O_RDWR)
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
	w := newWriter(f, source{f, size})
	w.path, w.old = path, &appended{f, file, map[uint64]*Output{}, map[uint64]*linking{}, size}
	return w, nil
}

// extend says how large the file is now.
func (w *Writer) extend() error {
	s, err := w.old.file.superblock()
	if err != nil {
		return err
	}
	le.PutUint64(s.bytes[s.endAt:], uint64(w.tree.size))
	if s.version >= 2 {
		sum := superblockSize - checksumSize
		le.PutUint32(s.bytes[sum:], lookup3(s.bytes[:sum]))
	}
	_, err = w.to.WriteAt(s.bytes, 0)
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

// has reports whether a data set or a group was in the file before.
func (a *appended) has(name string) bool {
	_, set := a.file.datasets[name]
	_, group := a.file.groups[name]
	return set || group
}

// dataset returns a data set that was in the file before.
func (a *appended) dataset(w *Writer, name string) (*Output, error) {
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
	d := &Output{Dataset: *found, w: &w.sink}
	d.tree = &w.tree
	a.open[address] = d
	return d, nil
}

// base is the name of the group, of those that were there, which a new name is added to: the last
// one on its way. rest is what follows.
func (a *appended) base(name string) (group, rest string) {
	for at, r := range name {
		if _, there := a.file.groups[name[:at]]; r == '/' && there {
			group, rest = name[:at], name[at+1:]
		}
	}
	if group == "" {
		rest = name
	}
	return group, rest
}

// admits says why a new data set or group cannot have a name.
func (a *appended) admits(name string) error {
	group, rest := a.base(name)
	member, _, _ := strings.Cut(rest, "/")
	links, err := a.linksOf(group)
	if err == nil && links.has[member] {
		err = fmt.Errorf("%w: there is %q", ErrName, join(group, member))
	}
	return err
}

// linksOf returns the links of a group that was there.
func (a *appended) linksOf(group string) (*linking, error) {
	address := a.file.groups[group]
	if l := a.links[address]; l != nil {
		return l, nil
	}
	l, err := a.file.linking(address)
	if err != nil {
		return nil, err
	}
	a.links[address] = l
	return l, nil
}

// closeOld writes what was added, and closes the file.
func (w *Writer) closeOld() error {
	patches := w.repointAll()
	patches = append(patches, w.linkAll()...)
	if w.err = w.attributed(); w.err == nil {
		w.err = w.old.f.Sync()
	}
	if w.err == nil {
		w.err = w.extend()
	}
	if w.err != nil {
		return fmt.Errorf("append to %s: %w", w.path, errors.Join(w.err, w.old.discard()))
	}
	for _, p := range patches {
		if _, err := w.to.WriteAt(p.bytes, int64(p.address)); err != nil {
			return fmt.Errorf("append to %s: %w", w.path, errors.Join(err, w.old.f.Close()))
		}
	}
	if err := errors.Join(w.old.f.Sync(), w.old.f.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", w.path, err)
	}
	return nil
}

// repointAll returns how the headers change of data sets that were there.
func (w *Writer) repointAll() (patches []patch) {
	for address, d := range w.old.open {
		p, err := w.repoint(address, d, d.chunkTree())
		patches, w.err = append(patches, p...), cmp.Or(w.err, err)
	}
	return patches
}

// linkAll writes what is new, and returns how the groups change that were there.
func (w *Writer) linkAll() (patches []patch) {
	added := map[string][]string{} // names by the group that was there
	for _, name := range w.made() {
		base, _ := w.old.base(name)
		added[base] = append(added[base], name)
	}
	groups, members := map[uint64]string{}, map[uint64]map[string]uint64{} // by address: a group may have two names
	for _, base := range slices.Sorted(maps.Keys(added)) {
		address := w.old.file.groups[base]
		if groups[address] = base; members[address] == nil {
			members[address] = map[string]uint64{}
		}
		for member, at := range w.members(strings.TrimPrefix(base+"/", "/"), added[base]) {
			if _, twice := members[address][member]; twice {
				w.err = cmp.Or(w.err, fmt.Errorf("%w: %q comes twice", ErrName, join(base, member)))
			}
			members[address][member] = at
		}
	}
	for address, group := range groups {
		p, err := w.link(group, members[address])
		patches, w.err = append(patches, p...), cmp.Or(w.err, err)
	}
	return patches
}

// discard leaves the file as it was. After Close it does nothing.
func (a *appended) discard() error {
	err := a.f.Truncate(a.begun)
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return errors.Join(err, a.f.Close())
}
