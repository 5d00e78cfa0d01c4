package arena

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Note [Contents] With SHOAL_DEBUG=lifetime each process has a block in which it writes, of each
// block that it holds, what that is and which calls allocated or received it. So the process that
// answers an observer tells it of all processes. As with timelines, only observers read it and
// nobody relies on it: it has no step in the reaper and no crash points. The block of a process
// that was killed goes with all that the process held.
//
// Such a block is not counted among those in use, and nobody is told to hold it: a program that is
// debugged has as many as another one.
//
// A record is 0 in its first word while it is being written. Otherwise this word has the index of
// the block, and a number that is another one after each change.

// Contents are what a block is to the package that uses it: of a tensor, its dtype and its shape.
type Contents struct {
	DType, Shape string
	Raw          bool // bytes in a row, of which views say more
}

// contentsForm is in the first word of such a block.
const contentsForm = 0x53484c434e540001

// The words of the block: a head, the records, and the texts of the calls.
const (
	contentsMagic  = iota
	contentsSeat   // of the process that writes
	contentsUsed   // records from the first one on that may be in use
	contentsUntold // blocks for which there was no record, in all
	contentsHead   = 8

	contentsRecords = 1 << 13
	recordWords     = 8 // block and number, calls, six words of text
	contentsSites   = 64
	siteWords       = 256
	sitesAt         = contentsHead + contentsRecords*recordWords
	contentsWords   = sitesAt + contentsSites*siteWords
)

// A contentsTable is this process's own. Its methods do nothing for nil, and are called by one
// goroutine at a time.
type contentsTable struct {
	words  Numbers[uint64]
	free   []int // records below used that are free again
	used   int
	number uint32
	sites  map[[maxCallers]uintptr]int // from 1
}

// tellContents makes the table of a process that keeps lifetimes. Without room for it the domain
// works as it does otherwise, and an observer learns nothing of this process's blocks.
func (d *Domain) tellContents() {
	if d.lives == nil {
		return
	}
	h, err := d.allocObject(briefly, 8*contentsWords, 8*contentsWords, objectContents)
	if err != nil {
		return
	}
	b, err := d.check(h)
	if err != nil {
		return
	}
	p, err := d.bytesOf(b)
	if err != nil || len(p) < 8*contentsWords {
		return
	}
	t := &contentsTable{words: NumbersIn[uint64](p), sites: map[[maxCallers]uintptr]int{}}
	t.words.Set(contentsSeat, uint64(d.seat))
	t.words.Set(contentsMagic, contentsForm) // now an observer reads the rest
	d.lives.mu.Lock()
	defer d.lives.mu.Unlock()
	d.lives.told = t
}

// add notes a block that this process begins to hold, and returns its record, or -1.
func (t *contentsTable) add(index uint32, from callers) int {
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
	t.write(r, index, func(w Numbers[uint64]) {
		w.Set(1, uint64(t.site(from)))
		putText(w[2:], "")
	})
	return r
}

// describe notes what the block of a record is.
func (t *contentsTable) describe(r int, index uint32, is Contents) {
	if t == nil || r < 0 {
		return
	}
	t.write(r, index, func(w Numbers[uint64]) { putText(w[2:], is.DType+" "+is.Shape) })
}

// remove ends a record.
func (t *contentsTable) remove(r int) {
	if t == nil || r < 0 {
		return
	}
	t.record(r).Set(0, 0)
	t.free = append(t.free, r)
}

func (t *contentsTable) write(r int, index uint32, f func(w Numbers[uint64])) {
	w := t.record(r)
	w.Set(0, 0)
	f(w)
	if t.number++; t.number == 0 {
		t.number++
	}
	w.Set(0, uint64(index)<<32|uint64(t.number))
}

func (t *contentsTable) record(r int) Numbers[uint64] {
	return t.words[contentsHead+r*recordWords:][:recordWords]
}

// site returns the number of calls whose text is in the table. It is 0 where the table is full.
func (t *contentsTable) site(from callers) int {
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

// putText writes s, or as many whole lines of it as there is room for, with a byte 0 at the end.
// One line that does not fit is cut.
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

// textIn reads what putText wrote. It returns nothing for what cannot be shown.
func textIn(w Numbers[uint64]) string {
	var b []byte
	for i := range w {
		v := w.At(i)
		for range 8 {
			if byte(v) == 0 {
				return shown(b)
			}
			b, v = append(b, byte(v)), v>>8
		}
	}
	return shown(b)
}

func shown(b []byte) string {
	plain := func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) }
	if !utf8.Valid(b) || slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return !plain(r) }) {
		return ""
	}
	return string(b)
}

// A note is what is told of a block.
type note struct {
	is    Contents
	stack string
}

// notes are what the processes tell of their blocks.
type notes struct {
	d       *Domain
	of      map[uint32]note
	sites   map[string]*siteNotes
	tellers int
	untold  uint64
}

// siteNotes are of the calls with one text, in one process or several.
type siteNotes struct {
	count  Count
	blocks map[uint32]bool
}

func newNotes(d *Domain) *notes {
	return &notes{d: d, of: map[uint32]note{}, sites: map[string]*siteNotes{}}
}

// read reads the table in a block whose word was w. The words may be anything.
func (n *notes) read(b *block, w stateWord) {
	p, ok := n.d.bytesNow(b)
	if !ok {
		return
	}
	words := NumbersIn[uint64](p)
	if len(words) < contentsWords || words.At(contentsMagic) != contentsForm {
		return
	}
	seat := words.At(contentsSeat)
	if seat >= maxParticipants || !holds(b, seat) {
		return
	}
	var stacks [contentsSites + 1]string // the first one is of calls that are not told
	for i := range contentsSites {
		stacks[i+1] = textIn(words[sitesAt+i*siteWords:][:siteWords])
	}
	for r := range int(min(words.At(contentsUsed), contentsRecords)) {
		rec := words[contentsHead+r*recordWords:][:recordWords]
		first := rec.At(0)
		if first == 0 {
			continue
		}
		site, text, i := rec.At(1), textIn(rec[2:]), uint32(first>>32)
		if rec.At(0) != first || site > contentsSites || uint64(i) >= n.d.count() || !holds(&n.d.blocks[i], seat) {
			continue
		}
		n.add(i, text, stacks[site])
	}
	if w.same(b.w.Load()) {
		n.tellers++
		n.untold += words.At(contentsUntold)
	}
}

// add adds what one process tells of a block. What another one has told before stays.
func (n *notes) add(i uint32, text, stack string) {
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
		s.count.add(int64(n.d.blocks[i].committed.Load()))
	}
}

// bySite counts the blocks by the calls that allocated or received them, most bytes first.
func (n *notes) bySite() (all []SiteCount) {
	for stack, s := range n.sites {
		all = append(all, SiteCount{stack, s.count})
	}
	slices.SortFunc(all, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stack, b.Stack))
	})
	return all[:min(len(all), maxSites)]
}

// byShape counts the tensors, those of most bytes first, and by dtype.
func (n *notes) byShape() (all []ShapeCount, dtypes map[string]Count) {
	counts := map[Contents]Count{}
	dtypes = map[string]Count{}
	for i, of := range n.of {
		if of.is == (Contents{}) {
			continue
		}
		c, t, size := counts[of.is], dtypes[of.is.DType], int64(n.d.blocks[i].committed.Load())
		c.add(size)
		t.add(size)
		counts[of.is], dtypes[of.is.DType] = c, t
	}
	for is, c := range counts {
		all = append(all, ShapeCount{is.DType, is.Shape, c})
	}
	slices.SortFunc(all, func(a, b ShapeCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.DType+a.Shape, b.DType+b.Shape))
	})
	return all[:min(len(all), maxSites)], dtypes
}

// isContents reports whether a block whose word is w is one of this kind.
func isContents(b *block, w stateWord) bool {
	return w.allocated() && extKind(b.ext.Load()) == objectContents
}

// holds reports whether the process in a seat holds a block.
func holds(b *block, seat uint64) bool { return b.own[seat/64].Load()>>(seat%64)&1 != 0 }
