package arena

import (
	"context"
	"fmt"
	"os"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/audit"
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Plant is a wrong word in one structure.
type Plant struct {
	Name string // the invariant that it violates
	Part string // the structure in the finding
}

// PlantAll writes a wrong word into each kind of structure. It needs 9 blocks, 5 rings with a
// message in the first and the second and a spilled one in the last, and 3 cells. The returned
// function puts the words right again.
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
	b := func(i int) (*layout.Block, string) {
		return &d.mem.Blocks[blocks[i].Block()], fmt.Sprintf("block %d", blocks[i].Block())
	}
	ring := func(i int) string { return fmt.Sprintf("ring %d", rings[i].h.Block()) }
	slot := func(i int) string { return fmt.Sprintf("%s, slot %d", ring(i/10), i%10) }
	lock := func(i int) string { return fmt.Sprintf("lock %d", cells[i].h.Block()) }

	x, name := b(0)
	write("state", name, &x.State.Word, uint64(x.State.Load())|word.WaitBit)
	x, name = b(1)
	write("bits", name, &x.Own[1], 1<<13)
	x, name = b(2)
	stamp := word.MakeStamp(80*layout.LanesPerSeat, word.KindPut)
	write("lane", name, &x.State.Word, uint64(x.State.Load()+word.TOne|stamp))
	x, name = b(3)
	write("transit", name, &x.State.Word, uint64(x.State.Load()+3*word.TOne))
	x, name = b(4)
	write("extent", name, &x.Extent, x.Extent.Load()|0xff<<layout.ExtentClassShift)
	x, name = b(5)
	write("pages", name, &x.Committed, 12345)
	x, _ = b(6)
	y, _ := b(7)
	write("overlap", "", &x.Extent, y.Extent.Load())
	x, name = b(8)
	write("holder", name, &x.Own[0], 0)

	write("slot", slot(1), &rings[0].slot(1).Word.Word, uint64(word.MakeSlot(0, 6, 0)))
	write("lap", slot(2), &rings[0].slot(2).Word.Word, uint64(word.MakeSlot(900, word.SlotEmpty, 0)))
	write("message", slot(0), &rings[0].slot(0).First, uint64(word.MakeHandle(blocks[1].Block(), 77)))
	write("put", slot(10), &rings[1].slot(0).Opseq, 1<<40)
	write("ring", ring(1), &rings[1].hdr.Flags, 1<<20)
	write("position", ring(2), &rings[2].hdr.Tail, 1<<40)
	write("end", ring(3), &rings[3].hdr.Senders, 0)
	table := ObjectAt(d, Handle(rings[4].slot(0).First.Load()))
	write("message", slot(40), (*word.Word)(unsafe.Pointer(&d.mem.Data[table+8])),
		uint64(word.MakeHandle(blocks[1].Block(), 77)))

	write("lock", lock(0), &cells[0].c.Lock.Word, word.MakeIdentity(7, 5)|3<<word.SeatShift|word.LockHeld)
	write("share", lock(1)+", share 9", &cells[1].c.Shares[9], word.MakeIdentity(7, 5)|2)
	write("cell", lock(2), &cells[2].c.Form, 99)

	write("phase", "lane 5", &d.mem.Lanes[5].Phase, 9)
	write("seat", "participant 50", &d.mem.Participants[50].State.Word, 0x100)
	write("counts", "the header", &d.mem.Header.Lost, 9)
	write("board", "the header", &d.mem.Header.Names, uint64(blocks[1]))
	write("list", "the free list of class 100", &d.mem.Header.Lists[100], 1<<21)
	write("charge", "the budget", &d.mem.Header.Budget.Word, uint64(word.MakeBudget(1, 0, 0)))
	return plants, func() {
		for i := len(all) - 1; i >= 0; i-- {
			all[i].w.Overwrite(all[i].v)
		}
	}
}

// CheckFiles checks the domain in two files in one pass, as [Check] does in several.
func CheckFiles(ctx context.Context, control, data *os.File) (audit.Pass, error) {
	s, err := examineFiles(control, data)
	if err != nil {
		return audit.Pass{}, err
	}
	defer s.unmap()
	return audit.RunPass(ctx, s)
}

// CheckImage is [CheckFiles] for a control segment and the beginning of a data segment in memory.
// The count of headers is bounded by the length of control.
func CheckImage(ctx context.Context, control, data []byte) error {
	s := &image{mapped: layout.OverlayMemory(control, data)}
	s.mapped.Header.DataSize.Overwrite(uint64(len(data)))
	_, err := audit.RunPass(ctx, s)
	return err
}

// An image is memory that no process shares.
type image struct{ mapped layout.Memory }

func (s *image) Memory() *layout.Memory        { return &s.mapped }
func (s *image) IsAlive(int) (bool, error)     { return false, nil }
func (s *image) BackedBytes(off uint64) uint64 { return uint64(len(s.mapped.Data)) - off }
func (s *image) Backed() (headers, seats uint64) {
	return uint64(len(s.mapped.Blocks)), word.MaxParticipants
}

// ImageSizes returns the bytes of a domain's control segment and data segment that are in use, as
// whole pages.
func ImageSizes(d *Domain) (control, data int) {
	control = int(layout.OffBlocks + d.mem.Header.Ready.Load()*layout.BlockSize)
	return control, int(layout.RoundUp(d.mem.Header.Brk.Load(), layout.PageSize))
}

// ObjectAt returns the offset of a block's bytes.
func ObjectAt(d *Domain, h Handle) int {
	off, _, _ := d.mem.ExtentRange(d.mem.Blocks[h.Block()].Extent.Load())
	return int(off)
}

// WordsIn returns the words in memory.
func WordsIn(p []byte) []uint64 { return unsafe.Slice((*uint64)(unsafe.Pointer(&p[0])), len(p)/8) }

// PassNow makes one pass over a domain in which operations are in progress.
func PassNow(d *Domain) (audit.Pass, error) {
	return audit.RunPass(context.Background(), participantSource{d})
}
