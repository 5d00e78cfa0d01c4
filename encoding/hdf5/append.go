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

// Note [In place] A Writer in append mode writes new data past the end of the file and never
// overwrites existing data. A chunk that existed before and changed, such as a partial chunk that
// is now full, is written to a new address, and so are the links of an existing group. Object
// headers are patched last, when everything they will refer to is on disk: the address of the chunk
// B-tree and the shape, or the location of the links. If the header is contiguous, this is a single
// write. A process that is killed therefore leaves either the old file, possibly with extra bytes
// at its end, or the new one. Object headers keep their addresses, because other programs may refer
// to objects by them.

// appended is the state of a [Writer] that adds to an existing file. [Append] makes it; the
// Writer owns it and the open file.
type appended struct {
	f     *os.File
	file  *File
	open  map[uint64]*Output  // existing data sets opened for writing, by header address
	links map[uint64]*linking // links of existing groups, by header address
	begun int64               // size of the file when it was opened
}

// Append opens an existing file to extend its data sets and to add new ones in place. The caller
// must call [Writer.Close], which commits the changes, or [Writer.Discard], which restores the
// file. No other program may write to the file in the meantime. The error wraps syscall.EWOULDBLOCK
// if another program has locked the file, as libhdf5 and Append do. It wraps [ErrFormat] or
// [ErrUnsupported] if the file cannot be appended to, and is otherwise the error of opening or
// reading it.
//
// A group accepts new members if it stores its links in a symbol table (h5py's default), or in an
// object header of version 2 (this package's format, and h5py's with libver="latest" for a few
// members). If a group stores its links in a fractal heap or in a header of version 1,
// [Writer.Dataset] and [Writer.Group] return an error that wraps [ErrUnsupported].
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
		err = file.checkAppendable()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	size := file.tree.size
	w := newWriter(f, source{f, size})
	w.path, w.old = path, &appended{f, file, map[uint64]*Output{}, map[uint64]*linking{}, size}
	return w, nil
}

// updateEOF writes the current size to the end-of-file address in the superblock.
func (w *Writer) updateEOF() error {
	s, err := w.old.file.readAppendFields()
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

// checkAppendable returns an error that wraps [ErrUnsupported] if the file uses a superblock
// feature that the append mode cannot write, and [ErrFormat] if the file is truncated.
func (f *File) checkAppendable() error {
	if f.UserBlock > 0 {
		return unsupported("to append after a user block of %d bytes", f.UserBlock)
	}
	s, err := f.readAppendFields()
	if err != nil {
		return err
	}
	if s.fanout != fanout {
		return unsupported("to append to a file with trees of %d children", s.fanout)
	}
	if s.extended {
		return unsupported("to append to a file with an extension of its superblock")
	}
	if end := le.Uint64(s.bytes[s.endAt:]); end > uint64(f.tree.size) {
		return malformed("got a file of %d bytes, want %d", f.tree.size, end)
	}
	return nil
}

// hasObject reports whether the file already had a data set or a group with the given name.
func (a *appended) hasObject(name string) bool {
	_, set := a.file.datasets[name]
	_, group := a.file.groups[name]
	return set || group
}

// openDataset opens an existing data set for writing; for a data set that is open already, it
// returns the same [Output]. Its chunks are marked as fixed, so that they are never overwritten;
// see Note [In place]. It returns an error that wraps [ErrUnsupported] if the data set is not
// chunked, is big-endian, or uses a filter that cannot be written.
func (a *appended) openDataset(w *Writer, name string) (*Output, error) {
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
		return nil, unsupported("to extend a data set that is not chunked: create it with a maximum shape")
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

// longestGroup splits name into the longest existing group that is a prefix of it, and the
// remaining path. group is "" if that is the root group.
func (a *appended) longestGroup(name string) (group, rest string) {
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

// checkName returns an error that wraps [ErrName] if the existing group that would contain name
// already has a member with the same name, and one that wraps [ErrUnsupported] if members cannot
// be added to the group.
func (a *appended) checkName(name string) error {
	group, rest := a.longestGroup(name)
	member, _, _ := strings.Cut(rest, "/")
	links, err := a.linksOf(group)
	if err == nil && links.has[member] {
		err = fmt.Errorf("%w: %q exists", ErrName, joinPath(group, member))
	}
	return err
}

// linksOf returns the links of an existing group. It caches them by header address. The error
// wraps [ErrUnsupported] if members cannot be added to the group.
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

// closeOld commits the additions and closes the file. After an error before the first patch, it
// restores the file. It must write and sync all new data before it patches the existing headers;
// see Note [In place].
func (w *Writer) closeOld() error {
	patches := w.updateIndexes()
	patches = append(patches, w.linkAll()...)
	if w.err = w.attributeError(); w.err == nil {
		w.err = w.old.f.Sync()
	}
	if w.err == nil {
		w.err = w.updateEOF()
	}
	if w.err != nil {
		return fmt.Errorf("append to %s: %w", w.path, errors.Join(w.err, w.old.truncateAndClose()))
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

// updateIndexes writes the chunk indexes of all existing data sets that were opened, and returns
// the patches for their headers. It stores an error in w.err.
func (w *Writer) updateIndexes() (patches []patch) {
	for address, d := range w.old.open {
		p, err := w.updateIndex(address, d, d.writeChunkTree())
		patches, w.err = append(patches, p...), cmp.Or(w.err, err)
	}
	return patches
}

// linkAll writes the new objects and returns the patches that link them into existing groups. It
// stores an error in w.err.
func (w *Writer) linkAll() (patches []patch) {
	added := map[string][]string{} // new names, by existing group
	for _, name := range w.newPaths() {
		base, _ := w.old.longestGroup(name)
		added[base] = append(added[base], name)
	}
	// Groups are identified by address, because hard links can give a group several names.
	groups, members := map[uint64]string{}, map[uint64]map[string]uint64{} // by address
	for _, base := range slices.Sorted(maps.Keys(added)) {
		address := w.old.file.groups[base]
		if groups[address] = base; members[address] == nil {
			members[address] = map[string]uint64{}
		}
		for member, at := range w.writeMembers(strings.TrimPrefix(base+"/", "/"), added[base]) {
			if _, twice := members[address][member]; twice {
				w.err = cmp.Or(w.err, fmt.Errorf("%w: duplicate name %q", ErrName, joinPath(base, member)))
			}
			members[address][member] = at
		}
	}
	for address, group := range groups {
		p, err := w.linkMembers(group, members[address])
		patches, w.err = append(patches, p...), cmp.Or(w.err, err)
	}
	return patches
}

// truncateAndClose truncates the file to its original size and closes it. It is a no-op after
// the file has been closed.
func (a *appended) truncateAndClose() error {
	err := a.f.Truncate(a.begun)
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return errors.Join(err, a.f.Close())
}
