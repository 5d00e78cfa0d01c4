package arena

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Contents] A process that runs with SHOAL_DEBUG=lifetime has a block of contents. There it
// records, for each block that it holds, the contents and the calls that allocated or received it.
// So the process that answers an observer can report for all processes. Like a timeline, such a
// block is read by observers only, and no operation depends on it: it has no step in the reaper and
// no crash points. The block of a killed process is freed with everything else that the process
// held.
//
// Such a block is not counted among the blocks in use, and has no holder in a report, so that
// debugging a program does not change its figures.
//
// The first word of a record is 0 while the record is being written. Otherwise it has the index of
// the block and a number that is different after each change.

// Contents describe what a block contains: the dtype and the shape of a tensor.
type Contents struct {
	DType, Shape string
	Raw          bool // plain bytes, which views may describe further
}

// contentsForm is the magic number in the first word of such a block.
const contentsForm = 0x53484c434e540001

// The words of the block: a head, the records, and the texts of the calls.
const (
	contentsMagic = iota
	contentsSeat  // seat of the writing process
	contentsUsed  // number of records, from the first one, that may be in use
	// contentsUntold is the total number of blocks that were not recorded for want of a free
	// record.
	contentsUntold
	contentsHead = 8

	contentsRecords = 1 << 13
	recordWords     = 8 // block and number, calls, six words of text
	contentsSites   = 64
	siteWords       = 256
	sitesAt         = contentsHead + contentsRecords*recordWords
	contentsWords   = sitesAt + contentsSites*siteWords
)

// A contentsTable is the table that this process writes (Note [Contents]). Its methods do
// nothing on nil. Apart from its creation, lifetimes.mu must be held when they are called.
type contentsTable struct {
	words  Numbers[uint64]
	free   []int // records below used that are free again
	used   int
	number uint32
	sites  map[[maxCallers]uintptr]int // number of the calls in the table, from 1
}

// createContentsTable makes the table of this process if it runs with SHOAL_DEBUG=lifetime. Without
// memory for it, everything else works, and observers learn nothing of this process's blocks.
func (d *Domain) createContentsTable() {
	if d.lives == nil {
		return
	}
	h, err := d.allocObject(briefly, 8*contentsWords, 8*contentsWords, layout.ObjectContents)
	if err != nil {
		return
	}
	b, err := d.checkHandle(h)
	if err != nil {
		return
	}
	p, err := d.bytesOf(b)
	if err != nil || len(p) < 8*contentsWords {
		return
	}
	t := &contentsTable{words: NumbersIn[uint64](p), sites: map[[maxCallers]uintptr]int{}}
	t.words.Set(contentsSeat, uint64(d.seat))
	t.words.Set(contentsMagic, contentsForm) // last: an observer reads the rest once it is set
	d.lives.mu.Lock()
	defer d.lives.mu.Unlock()
	d.lives.told = t
}

// addRecord records a block that this process now holds, and the calls that allocated or
// received it. It returns the index of the record for setContents and removeRecord, or -1 if t
// is nil or no record is free.
func (t *contentsTable) addRecord(index uint32, from callers) int {
	if t == nil {
		return -1
	}
	r := t.used
	switch n := len(t.free); {
	case n > 0:
		r, t.free = t.free[n-1], t.free[:n-1]
	case t.used == contentsRecords:
		t.words.Add(contentsUntold, 1)
		return -1
	default:
		t.used++
		t.words.Set(contentsUsed, uint64(t.used))
	}
	t.writeRecord(r, index, func(w Numbers[uint64]) {
		w.Set(1, uint64(t.siteNumber(from)))
		putText(w[2:], "")
	})
	return r
}

// setContents sets the contents of record r, for the block with the given index. It does nothing
// if r is -1.
func (t *contentsTable) setContents(r int, index uint32, is Contents) {
	if t == nil || r < 0 {
		return
	}
	t.writeRecord(r, index, func(w Numbers[uint64]) { putText(w[2:], is.DType+" "+is.Shape) })
}

// removeRecord deletes record r, which may then be used for another block. It does nothing if r
// is -1.
func (t *contentsTable) removeRecord(r int) {
	if t == nil || r < 0 {
		return
	}
	t.record(r).Set(0, 0)
	t.free = append(t.free, r)
}

// writeRecord changes record r, of the block with the given index. f must write the record's
// words from word 1 on. The first word is 0 meanwhile, and then gets the index and a new number.
func (t *contentsTable) writeRecord(r int, index uint32, f func(w Numbers[uint64])) {
	w := t.record(r)
	w.Set(0, 0)
	f(w)
	if t.number++; t.number == 0 {
		t.number++
	}
	w.Set(0, uint64(index)<<32|uint64(t.number))
}

// record returns the words of record r.
func (t *contentsTable) record(r int) Numbers[uint64] {
	return t.words[contentsHead+r*recordWords:][:recordWords]
}

// siteNumber returns the number, from 1, of the call stack from in the table. If the stack is
// new, it adds its text. It returns 0 if the table is full.
func (t *contentsTable) siteNumber(from callers) int {
	var key [maxCallers]uintptr
	copy(key[:], from)
	n, ok := t.sites[key]
	if !ok && len(t.sites) < contentsSites {
		n = len(t.sites) + 1
		t.sites[key] = n
		putText(t.words[sitesAt+(n-1)*siteWords:][:siteWords], from.String())
	}
	return n
}

// putText writes s, followed by a zero byte. If s is too long, it writes as many whole lines as
// fit; a first line that does not fit is cut.
func putText(w Numbers[uint64], s string) {
	if most := 8*len(w) - 1; len(s) > most {
		s = s[:most]
		if i := strings.LastIndexByte(s, '\n'); i >= 0 {
			s = s[:i+1]
		}
	}
	for i := range w {
		var v uint64
		for k := range min(8, max(0, len(s)-8*i)) {
			v |= uint64(s[8*i+k]) << (8 * k)
		}
		w.Set(i, v)
		if 8*i > len(s) {
			return
		}
	}
}

// decodeText reads a text written by putText. It returns "" if the text is not printable.
func decodeText(w Numbers[uint64]) string {
	var b []byte
	for i := range w {
		v := w.At(i)
		for range 8 {
			if byte(v) == 0 {
				return printableText(b)
			}
			b, v = append(b, byte(v)), v>>8
		}
	}
	return printableText(b)
}

// printableText returns b as a string, or "" if b is not printable UTF-8.
func printableText(b []byte) string {
	plain := func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) }
	if !utf8.Valid(b) || slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return !plain(r) }) {
		return ""
	}
	return string(b)
}

// A note is the information that processes have recorded about a block.
type note struct {
	is    Contents
	stack string
}

// notes collects the tables of contents of all processes for one observation. Its methods must
// not be called at the same time.
type notes struct {
	d       *Domain
	of      map[uint32]note
	sites   map[string]*siteNotes
	tellers int    // tables read
	untold  uint64 // blocks without a record, in all tables
}

// A siteNotes counts the blocks, in all processes, that call stacks with the same text have
// allocated or received.
type siteNotes struct {
	count  observe.Count
	blocks map[uint32]bool
}

// newNotes returns an empty collection.
func newNotes(d *Domain) *notes {
	return &notes{d: d, of: map[uint32]note{}, sites: map[string]*siteNotes{}}
}

// readTable adds the table in block b, or nothing if b has no valid table. w is the state word
// that the caller has read. readTable accepts arbitrary words. A record counts only if the
// process in the table's seat holds the block.
func (n *notes) readTable(b *layout.Block, w word.State) {
	p, ok := n.d.mem.BlockBytes(b)
	if !ok {
		return
	}
	words := NumbersIn[uint64](p)
	if len(words) < contentsWords || words.At(contentsMagic) != contentsForm {
		return
	}
	seat := words.At(contentsSeat)
	if seat >= word.MaxParticipants || !isHeldBy(b, seat) {
		return
	}
	var stacks [contentsSites + 1]string // index 0: calls without a text
	for i := range contentsSites {
		stacks[i+1] = decodeText(words[sitesAt+i*siteWords:][:siteWords])
	}
	for r := range int(min(words.At(contentsUsed), contentsRecords)) {
		rec := words[contentsHead+r*recordWords:][:recordWords]
		first := rec.At(0)
		if first == 0 {
			continue
		}
		site, text, i := rec.At(1), decodeText(rec[2:]), uint32(first>>32)
		if rec.At(0) != first || site > contentsSites || uint64(i) >= n.d.blockCount() ||
			!isHeldBy(&n.d.mem.Blocks[i], seat) {
			continue
		}
		n.addNote(i, text, stacks[site])
	}
	if w.IsSameUse(b.State.Load()) {
		n.tellers++
		n.untold += words.At(contentsUntold)
	}
}

// addNote adds the information of one process about block i: the text of its record, which is
// the dtype, a space and the shape, and the call stack. Earlier information about the block
// takes precedence.
func (n *notes) addNote(i uint32, text, stack string) {
	old := n.of[i]
	if old.is == (Contents{}) {
		old.is.DType, old.is.Shape, _ = strings.Cut(text, " ")
	}
	old.stack = cmp.Or(old.stack, stack)
	n.of[i] = old
	if stack == "" {
		return
	}
	s := n.sites[stack]
	if s == nil {
		s = &siteNotes{blocks: map[uint32]bool{}}
		n.sites[stack] = s
	}
	if !s.blocks[i] {
		s.blocks[i] = true
		s.count.Add(int64(n.d.mem.Blocks[i].Committed.Load()))
	}
}

// maxSites is the maximum number of calls, and of shapes, in the result.
const maxSites = 32

// result returns the collected records. It lists at most [maxSites] call stacks and as many
// shapes.
func (n *notes) result() *observe.Notes {
	all := &observe.Notes{Tellers: n.tellers, Untold: n.untold, Of: map[uint32]observe.Note{}}
	for i, told := range n.of {
		all.Of[i] = observe.Note{Stack: told.stack, DType: told.is.DType, Shape: told.is.Shape}
	}
	all.Sites = n.countBySite()
	all.Shapes, all.DTypes = n.countByShape()
	return all
}

// countBySite counts the blocks by the calls that allocated or received them, and sorts by bytes,
// greatest first.
func (n *notes) countBySite() (all []observe.SiteCount) {
	for stack, s := range n.sites {
		all = append(all, observe.SiteCount{Stack: stack, Count: s.count})
	}
	slices.SortFunc(all, func(a, b observe.SiteCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stack, b.Stack))
	})
	return all[:min(len(all), maxSites)]
}

// countByShape counts the tensors by dtype and shape, sorted by bytes, greatest first, and by dtype
// alone.
func (n *notes) countByShape() (all []observe.ShapeCount, dtypes map[string]observe.Count) {
	counts := map[Contents]observe.Count{}
	dtypes = map[string]observe.Count{}
	for i, of := range n.of {
		if of.is == (Contents{}) {
			continue
		}
		c, t, size := counts[of.is], dtypes[of.is.DType], int64(n.d.mem.Blocks[i].Committed.Load())
		c.Add(size)
		t.Add(size)
		counts[of.is], dtypes[of.is.DType] = c, t
	}
	for is, c := range counts {
		all = append(all, observe.ShapeCount{DType: is.DType, Shape: is.Shape, Count: c})
	}
	slices.SortFunc(all, func(a, b observe.ShapeCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.DType+a.Shape, b.DType+b.Shape))
	})
	return all[:min(len(all), maxSites)], dtypes
}

// isContents reports whether block b is allocated in state word w and has a table of contents.
func isContents(b *layout.Block, w word.State) bool {
	return w.IsAllocated() && layout.ExtentKind(b.Extent.Load()) == layout.ObjectContents
}

// isHeldBy reports whether the process in a seat holds block b.
func isHeldBy(b *layout.Block, seat uint64) bool { return b.Own.Has(int(seat)) }
