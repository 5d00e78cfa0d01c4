package arena

import (
	"context"
	"fmt"
	"os"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// ruleNamesOfTests are the invariants by the names that a [Plant] uses.
var ruleNamesOfTests = map[string]*invariant{
	"seat": ruleSeat, "bits": ruleBits, "lane": ruleLane, "counts": ruleCounts, "phase": rulePhase, "board": ruleNames,
	"list": ruleList, "state": ruleState, "transit": ruleTransit, "holder": ruleHolder, "extent": ruleExtent,
	"overlap": ruleOverlap, "pages": rulePages, "charge": ruleCharge, "ring": ruleRing, "position": rulePosition,
	"end": ruleEnd, "slot": ruleSlot, "lap": ruleLap, "message": ruleMessage, "put": rulePut, "cell": ruleCell,
	"lock": ruleLock, "share": ruleShare,
}

// RuleText returns the text of an invariant.
func RuleText(name string) string { return ruleNamesOfTests[name].text }

// A Plant is a wrong word in one structure.
type Plant struct {
	Name string // the invariant that it violates
	Part string // the structure in the finding
}

// PlantAll writes a wrong word into each kind of structure. It needs 9 blocks, 4 rings with a
// message in the first and the second, and 3 cells. The returned function puts the words right
// again.
func PlantAll(d *Domain, blocks []Handle, rings []*Ring, cells []*Sync) (plants []Plant, mend func()) {
	type old struct {
		w *word.Word
		v uint64
	}
	var all []old
	write := func(name, part string, w *word.Word, v uint64) {
		all = append(all, old{w, w.Load()})
		w.Overwrite(v)
		plants = append(plants, Plant{name, part})
	}
	b := func(i int) (*block, string) { return &d.blocks[blocks[i].Block()], blockName(blocks[i].Block()) }
	ring := func(i int) string { return fmt.Sprintf("ring %d", rings[i].h.Block()) }
	slot := func(i int) string { return fmt.Sprintf("%s, slot %d", ring(i/10), i%10) }
	lock := func(i int) string { return fmt.Sprintf("lock %d", cells[i].h.Block()) }

	x, name := b(0)
	write("state", name, &x.w.Word, uint64(x.w.Load())|word.WaitBit)
	x, name = b(1)
	write("bits", name, &x.own[1], 1<<13)
	x, name = b(2)
	write("lane", name, &x.w.Word, uint64(x.w.Load()+word.TOne|word.MakeStamp(80*lanesPerSeat, word.KindPut)))
	x, name = b(3)
	write("transit", name, &x.w.Word, uint64(x.w.Load()+3*word.TOne))
	x, name = b(4)
	write("extent", name, &x.ext, x.ext.Load()|0xff<<extClassShift)
	x, name = b(5)
	write("pages", name, &x.committed, 12345)
	x, _ = b(6)
	y, _ := b(7)
	write("overlap", "", &x.ext, y.ext.Load())
	x, name = b(8)
	write("holder", name, &x.own[0], 0)

	write("slot", slot(1), &rings[0].slot(1).word.Word, uint64(word.MakeSlot(0, 6, 0)))
	write("lap", slot(2), &rings[0].slot(2).word.Word, uint64(word.MakeSlot(900, word.SlotEmpty, 0)))
	write("message", slot(0), &rings[0].slot(0).first, uint64(word.MakeHandle(blocks[1].Block(), 77)))
	write("put", slot(10), &rings[1].slot(0).opseq, 1<<40)
	write("ring", ring(1), &rings[1].hdr.flags, 1<<20)
	write("position", ring(2), &rings[2].hdr.tail, 1<<40)
	write("end", ring(3), &rings[3].hdr.senders, 0)

	write("lock", lock(0), &cells[0].c.lock.Word, word.MakeIdentity(7, 5)|3<<word.SeatShift|word.LockHeld)
	write("share", lock(1)+", share 9", &cells[1].c.shares[9], word.MakeIdentity(7, 5)|2)
	write("cell", lock(2), &cells[2].c.form, 99)

	write("phase", "lane 5", &d.recs[5].phase, 9)
	write("seat", "participant 50", &d.parts[50].state.Word, 0x100)
	write("counts", "the header", &d.hdr.lost, 9)
	write("board", "the header", &d.hdr.names, uint64(blocks[1]))
	write("list", "the free list of class 100", &d.hdr.lists[100], 1<<21)
	write("charge", "the budget", &d.hdr.budget.Word, uint64(word.MakeBudget(1, 0, 0)))
	return plants, func() {
		for i := len(all) - 1; i >= 0; i-- {
			all[i].w.Overwrite(all[i].v)
		}
	}
}

// CheckFiles checks the domain in two files in one pass, as [Check] does in several. It returns the
// number of findings.
func CheckFiles(ctx context.Context, control, data *os.File) (CheckCounts, int, error) {
	d, err := examineFiles(control, data)
	if err != nil {
		return CheckCounts{}, 0, err
	}
	defer d.store.(*examined).unmap()
	a := newAuditor(ctx, d, false)
	err = a.runPass()
	return a.counts, len(a.found) + a.more, err
}

// CheckImage is [CheckFiles] for a control segment and the beginning of a data segment in memory.
// The count of headers is bounded by the length of control.
func CheckImage(ctx context.Context, control, data []byte) (int, error) {
	d := overlayStore(&image{ctl: control, mem: data})
	d.hurry()
	d.hdr.dataSize.Overwrite(uint64(len(data)))
	a := newAuditor(ctx, d, false)
	err := a.runPass()
	return len(a.found) + a.more, err
}

// An image is a store of memory that no process shares.
type image struct {
	examined
	ctl, mem []byte
}

func (s *image) control() []byte { return s.ctl }
func (s *image) data() []byte    { return s.mem }

// ImageSizes returns the bytes of a domain's control segment and data segment that are in use, as
// whole pages.
func ImageSizes(d *Domain) (control, data int) {
	return int(offBlocks + d.hdr.ready.Load()*blockSize), int(roundUp(d.hdr.brk.Load(), pageSize))
}

// ObjectAt returns the offset of a block's bytes.
func ObjectAt(d *Domain, h Handle) int {
	off, _, _ := d.peekRange(d.blocks[h.Block()].ext.Load())
	return int(off)
}

// WordsIn returns the words in memory.
func WordsIn(p []byte) []uint64 { return unsafe.Slice((*uint64)(unsafe.Pointer(&p[0])), len(p)/8) }

// FindingsNow returns the findings of one pass over a domain in which operations are in progress.
// firm are those that no unfinished operation may explain.
func FindingsNow(d *Domain) (firm, brief []Violation) {
	a := newAuditor(context.Background(), d, false)
	a.runPass()
	for _, f := range a.found {
		if f.rule.brief {
			brief = append(brief, f.violation())
		} else {
			firm = append(firm, f.violation())
		}
	}
	return firm, brief
}
