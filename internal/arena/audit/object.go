package audit

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// checkWaiters checks the bitmaps of waiters in block i, if it is a ring or a cell.
func (a *auditor) checkWaiters(i uint32, b *layout.Block, w word.State) {
	p := a.bytes(b)
	switch kind := layout.ExtentKind(b.Extent.Load()); {
	case !w.IsAllocated():
	case kind == layout.ObjectRing && len(p) >= layout.RingHeaderSize:
		r := (*layout.RingHeader)(unsafe.Pointer(&p[0]))
		a.checkBits(&r.NotEmpty, "not empty", fmt.Sprintf("ring %d", i))
		a.checkBits(&r.NotFull, "not full", fmt.Sprintf("ring %d", i))
	case kind == layout.ObjectSync && len(p) >= int(layout.CellHeadSize):
		c := (*layout.Cell)(unsafe.Pointer(&p[0]))
		a.checkBits(&c.Waiting, "waiting", fmt.Sprintf("lock %d", i))
		a.checkBits(&c.Watching, "watching", fmt.Sprintf("lock %d", i))
	}
}

// checkObject checks the ring or the cell in a block, if it has one.
func (a *auditor) checkObject(i uint32, b *layout.Block, w word.State) {
	if !w.IsAllocated() || !a.rest && !w.IsSteady() {
		return
	}
	a.checkWaiters(i, b, w)
	switch layout.ExtentKind(b.Extent.Load()) {
	case layout.ObjectRing:
		a.checkRing(i, b)
	case layout.ObjectSync:
		a.checkCell(i, b)
	}
}

// bytes returns the bytes of block b that are backed, or nil if its extent is illegal.
func (a *auditor) bytes(b *layout.Block) []byte {
	p, ok := a.mem.BlockBytes(b)
	if ok && len(p) > 0 {
		p = p[:min(uint64(len(p)), a.src.BackedBytes(layout.ExtentOffset(b.Extent.Load())))]
	}
	return p
}

// A ringView is a ring with a legal size.
type ringView struct {
	hdr   *layout.RingHeader
	slots uint64
}

// lap returns the lap of a ticket.
func (r *ringView) lap(ticket uint64) uint64 {
	return layout.LapOf(ticket, bits.TrailingZeros64(r.slots))
}

// readRing returns the head of the ring in block b, or nil if the block is too short or the ring is
// being made. It also returns a view of the ring, or nil if the head is illegal, and the number of
// slots that can be read.
func (a *auditor) readRing(b *layout.Block) (hdr *layout.RingHeader, r *ringView, slots uint64) {
	p := a.bytes(b)
	_, most, ok := a.mem.ExtentRange(b.Extent.Load())
	if !ok || len(p) < layout.RingHeaderSize {
		return nil, nil, 0
	}
	hdr = (*layout.RingHeader)(unsafe.Pointer(&p[0]))
	if hdr.Capacity.Load() == 0 {
		return nil, nil, 0
	}
	n, _, err := hdr.Size(most)
	if err != nil {
		return hdr, nil, 0
	}
	r = &ringView{hdr: hdr, slots: n}
	return hdr, r, min(n, uint64(len(p)-layout.RingHeaderSize)/layout.SlotSize)
}

// checkRing checks a ring and its slots, and counts the messages that hold blocks.
func (a *auditor) checkRing(i uint32, b *layout.Block) {
	hdr, r, slots := a.readRing(b)
	if hdr == nil {
		return
	}
	part := fmt.Sprintf("ring %d", i)
	if r == nil {
		capacity, limit := hdr.Capacity.Load(), hdr.Limit.Load()
		a.addFinding(ruleRing, part, []evidence{evidenceOf(&hdr.Capacity, capacity), evidenceOf(&hdr.Limit, limit)},
			"%d slots, limit %d", capacity, limit)
		return
	}
	a.counts.Rings++
	flags := r.hdr.Flags.Load()
	board := flags&layout.RingBoard != 0
	if flags >= layout.RingLeases<<1 {
		a.addFinding(ruleRing, part, []evidence{evidenceOf(&r.hdr.Flags, flags)}, "flags %#x", flags)
	}
	if !board {
		a.checkPositions(r, part)
		a.checkEnd(i, r, &r.hdr.Senders, layout.RingNoSenders, layout.ObjectSenders)
		a.checkEnd(i, r, &r.hdr.Receivers, layout.RingNoReceivers, layout.ObjectReceivers)
	}
	for k := uint64(0); k < slots && a.hasTime(); k++ {
		a.checkSlot(r, part, k, board)
	}
}

// checkPositions compares the tail with the head. The tail is a hint, which may be behind the head
// by the span of a put.
func (a *auditor) checkPositions(r *ringView, part string) {
	head := r.hdr.Head.Load()
	tail := r.hdr.Tail.Load()
	if n := int64(tail - head); r.hdr.Head.Load() == head && (n > int64(r.slots) || n < -layout.MaxBatch) {
		a.addFinding(rulePosition, part, []evidence{evidenceOf(&r.hdr.Head, head), evidenceOf(&r.hdr.Tail, tail)},
			"head %d, tail %d, %d slots", head, tail, r.slots)
	}
}

// checkEnd checks that the token of an end exists unless the end is gone. The token must be read
// before the flag: an end's finaliser sets the flag before it frees the token.
func (a *auditor) checkEnd(i uint32, r *ringView, token *word.Word, gone uint64, kind layout.ObjectKind) {
	v := token.Load()
	if h := word.Handle(v); a.isAllocated(h) {
		e := a.mem.Blocks[h.Block()].Extent.Load()
		if layout.ExtentKind(e) == kind && layout.ExtentOffset(e)/64 == uint64(i) || !a.isAllocated(h) {
			return
		}
	} else if h.IsWellFormed() && h.Block() >= a.count && uint64(h.Block()) < a.mem.Header.Blocks.Load() {
		return // made since the pass began
	}
	flags := r.hdr.Flags.Load()
	if flags&gone == 0 {
		a.addFinding(ruleEnd, fmt.Sprintf("ring %d", i), []evidence{evidenceOf(token, v), evidenceOf(&r.hdr.Flags, flags)},
			"%v is not its %s, and flags are %#x", word.Handle(v), layout.KindNames[kind], flags)
	}
}

// checkSlot checks slot k of a ring. The head must be read before and after the slot's word, which
// is compared with the laps between the two.
func (a *auditor) checkSlot(r *ringView, ring string, k uint64, board bool) {
	a.counts.Slots++
	s := r.hdr.Slot(k)
	first := r.hdr.Head.Load()
	w := s.Word.Load()
	last := r.hdr.Head.Load()
	part := fmt.Sprintf("%s, slot %d", ring, k)
	observed := evidenceOf(s.Word.Untyped(), uint64(w))
	if why := w.FindFault(); why != "" {
		a.addFinding(ruleSlot, part, []evidence{observed}, "slot word %#x (%v): %s", uint64(w), w, why)
		return
	}
	ticket := func(head uint64) uint64 { return head + (k-head)&(r.slots-1) }
	if !board && (w.IsBefore(r.lap(ticket(first))-1) || w.IsAfter(r.lap(ticket(last))+1)) {
		a.addFinding(ruleLap, part, []evidence{observed}, "%v, which is not a lap of its ring", w)
		return
	}
	switch w.State() {
	case word.SlotWriting, word.SlotReading:
		a.checkStamper(w.Lane(), observed, part, w)
		if a.rest {
			a.addFinding(ruleRest, part, nil, "%v", w)
		}
		blocks, _ := a.readMessage(s, w, 0)
		for _, i := range blocks {
			a.maybe[i]++
		}
	case word.SlotLeased:
		a.checkStamper(w.Lane(), observed, part, w)
		a.checkMessage(s, w, part)
	case word.SlotFull:
		a.checkMessage(s, w, part)
	}
}

// checkMessage checks a message that is in its ring, and counts it for its blocks.
func (a *auditor) checkMessage(s *layout.Slot, w word.Slot, part string) {
	meta, opseq := s.Meta.Load(), s.Opseq.Load()
	blocks, wrong := a.readMessage(s, w, word.TOne)
	words := []evidence{evidenceOf(s.Word.Untyped(), uint64(w)), evidenceOf(&s.Meta, meta)}
	if wrong != "" {
		a.addFinding(ruleMessage, part, words, "%v: %s", w, wrong)
		return
	}
	for _, i := range blocks {
		a.sure[i]++
	}
	// The lane's number must be read after the slot's.
	lane := meta >> 32
	if lane >= layout.MaxLanes || lane < a.countLanes() && opseq > a.mem.Lanes[lane].Opseq.Load() {
		if s.Word.Load() == w {
			a.addFinding(rulePut, part, append(words, evidenceOf(&s.Opseq, opseq)), "put %d of lane %d", opseq, lane)
		}
	}
}

// readMessage returns the indices of a message's blocks, and describes the fault of the message.
// It returns neither if the slot's word is no longer w. least is the smallest legal transit field
// of the blocks. A message that is being put or got may be incomplete: with least 0, wrong handles
// are left out.
func (a *auditor) readMessage(s *layout.Slot, w word.Slot, least uint64) (blocks []uint32, wrong string) {
	meta := s.Meta.Load()
	n := meta >> 8 & 0xff
	spilled := meta&layout.MetaSpill != 0
	if meta>>16&0xffff > layout.SlotBody || n > layout.SlotBlocks || meta&0xff > layout.MetaSpill || spilled && n != 1 {
		wrong, n = fmt.Sprintf("its length and blocks are %#x", meta&(1<<32-1)), 0
	}
	add := func(h word.Handle) {
		switch {
		case a.inTransit(h, least):
			blocks = append(blocks, h.Block())
		case !a.isNew(h):
			wrong = fmt.Sprintf("it has %v, which no message holds", h)
		}
	}
	for i := range n {
		add(word.Handle(s.BlockWord(int(i)).Load()))
	}
	if spilled && len(blocks) == 1 {
		if fault := a.readSpill(&a.mem.Blocks[blocks[0]], add); fault != "" {
			wrong = fault
		}
	}
	slices.Sort(blocks)
	for k := 1; k < len(blocks); k++ {
		if blocks[k] == blocks[k-1] {
			wrong = fmt.Sprintf("it has block %d twice", blocks[k])
		}
	}
	if s.Word.Load() != w {
		return nil, ""
	}
	if least == 0 {
		return slices.Compact(blocks), ""
	}
	return blocks, wrong
}

// readSpill calls add with each handle in the table of a spilled message in block b. It returns a
// description of the fault of the table, or "". It is exempt from the race detector, because the
// block may be reused meanwhile.
//
//go:norace
func (a *auditor) readSpill(b *layout.Block, add func(word.Handle)) string {
	p := a.bytes(b)
	if len(p) < 16 {
		return "its block is too short for a table"
	}
	n := binary.LittleEndian.Uint64(p)
	if n > uint64(len(p)-16)/8 {
		return fmt.Sprintf("its table has %d blocks", n)
	}
	for i := range n {
		if !a.hasTime() {
			break
		}
		add(word.Handle(binary.LittleEndian.Uint64(p[8+8*i:])))
	}
	return ""
}

// inTransit is [layout.Memory.IsInTransit] for blocks that the pass covers, and false for others.
func (a *auditor) inTransit(h word.Handle, least uint64) bool {
	return h.Block() < a.count && a.mem.IsInTransit(h, least)
}

// isNew reports whether h may be a block that was made since the pass began.
func (a *auditor) isNew(h word.Handle) bool {
	return h.IsWellFormed() && h.Block() >= a.count && uint64(h.Block()) < a.mem.CountBlocks()
}

// countLanes returns the number of lane records that can be read.
func (a *auditor) countLanes() uint64 {
	_, seats := a.src.Backed()
	return min(uint64(a.mem.CountSeats()), seats) * layout.LanesPerSeat
}

// checkCell checks the words of a cell.
func (a *auditor) checkCell(i uint32, b *layout.Block) {
	p, part := a.bytes(b), fmt.Sprintf("lock %d", i)
	if len(p) < int(layout.CellHeadSize) {
		return // being made, or not backed
	}
	c := (*layout.Cell)(unsafe.Pointer(&p[0]))
	v := c.Form.Load()
	form := layout.Form(v)
	if v == 0 {
		return // being made
	}
	if layout.FormNames[form] == "" || v&^(0xff|layout.FormBounded) != 0 || uint64(len(p)) < form.Size() {
		a.addFinding(ruleCell, part, []evidence{evidenceOf(&c.Form, v)}, "form %#x in %d bytes", v, len(p))
		return
	}
	a.counts.Locks++
	w := c.Lock.Load()
	const reserved = 1<<word.SeatShift - 1 - word.LockLost
	free := w.State() == word.LockFree
	if free && w != 0 || w&reserved != 0 || !free && a.neverSeated(w.Seat(), uint64(w)) {
		a.addFinding(ruleLock, part, []evidence{evidenceOf(c.Lock.Untyped(), uint64(w))}, "lock word %#x (%v)", uint64(w), w)
	}
	if form == layout.FormSemaphore {
		if v := c.State.Load(); v&(1<<12-1) > word.MaxParticipants {
			a.addFinding(ruleShare, part, []evidence{evidenceOf(&c.State, v)}, "state %#x has no seat", v)
		}
	}
	if form.Size() == uint64(layout.CellHeadSize) {
		return
	}
	for s := range c.Shares {
		if v := c.Shares[s].Load(); v&word.CountMask != 0 && a.neverSeated(s, v) {
			a.addFinding(ruleShare, fmt.Sprintf("%s, share %d", part, s), []evidence{evidenceOf(&c.Shares[s], v)},
				"process %d in epoch %d of the seat, %d times", v>>word.PIDShift, v>>word.EpochShift&word.EpochMask,
				v&word.CountMask)
		}
	}
}

// neverSeated reports whether no participant with this identity has ever been in the seat. The
// caller must have read the identity before, because the epoch of a seat only grows.
func (a *auditor) neverSeated(seat int, id uint64) bool {
	p := &a.mem.Participants[seat]
	w := p.State.Load()
	ahead := int32((uint32(id>>word.EpochShift) - w.Epoch()) << 10) // epochs in identities have 22 bits
	switch {
	case ahead > 0 || ahead == 0 && w.HasState(word.ParticipantFree):
		return true
	case ahead < 0:
		return id>>word.PIDShift == 0
	}
	pid := p.PID.Load()
	return id>>word.PIDShift != pid && p.State.Load() == w
}
