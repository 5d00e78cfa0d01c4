package arena

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// checkWaiters checks the bitmaps of waiters in block i, if it is a ring or a cell.
func (a *auditor) checkWaiters(i uint32, b *block, w word.State) {
	p := a.bytes(b)
	switch kind := extKind(b.ext.Load()); {
	case !w.IsAllocated():
	case kind == objectRing && len(p) >= ringHead:
		r := (*ring)(unsafe.Pointer(&p[0]))
		a.checkBits(&r.notEmpty, "not empty", fmt.Sprintf("ring %d", i))
		a.checkBits(&r.notFull, "not full", fmt.Sprintf("ring %d", i))
	case kind == objectSync && len(p) >= int(cellHead):
		c := (*cell)(unsafe.Pointer(&p[0]))
		a.checkBits(&c.waiting, "waiting", fmt.Sprintf("lock %d", i))
		a.checkBits(&c.watching, "watching", fmt.Sprintf("lock %d", i))
	}
}

// checkObject checks the ring or the cell in a block, if it has one.
func (a *auditor) checkObject(i uint32, b *block, w word.State) {
	if !w.IsAllocated() || !a.rest && !w.IsSteady() {
		return
	}
	a.checkWaiters(i, b, w)
	switch extKind(b.ext.Load()) {
	case objectRing:
		a.checkRing(i, b)
	case objectSync:
		a.checkCell(i, b)
	}
}

// bytes returns the bytes of block b that are backed, or nil if its extent is illegal.
func (a *auditor) bytes(b *block) []byte {
	p, ok := a.d.peekBytes(b)
	if s, examined := a.d.store.(*examined); ok && examined && len(p) > 0 {
		p = p[:min(uint64(len(p)), s.backedBytes(extOffset(b.ext.Load())))]
	}
	return p
}

// readRing returns the head of the ring in block b, or nil if the block is too short or the ring is
// being made. It also returns a view of the ring, or nil if the head is illegal, and the number of
// slots that can be read.
func (a *auditor) readRing(b *block) (hdr *ring, r *Ring, slots uint64) {
	p := a.bytes(b)
	_, most, ok := a.d.peekRange(b.ext.Load())
	if !ok || len(p) < ringHead {
		return nil, nil, 0
	}
	hdr = (*ring)(unsafe.Pointer(&p[0]))
	if hdr.capacity.Load() == 0 {
		return nil, nil, 0
	}
	r, err := a.d.ringIn(b, hdr, most)
	if err != nil {
		return hdr, nil, 0
	}
	return hdr, r, min(r.cap, uint64(len(p)-ringHead)/slotSize)
}

// checkRing checks a ring and its slots, and counts the messages that hold blocks.
func (a *auditor) checkRing(i uint32, b *block) {
	hdr, r, slots := a.readRing(b)
	if hdr == nil {
		return
	}
	part := fmt.Sprintf("ring %d", i)
	if r == nil {
		capacity, limit := hdr.capacity.Load(), hdr.limit.Load()
		a.addFinding(ruleRing, part, []seen{seenWord(&hdr.capacity, capacity), seenWord(&hdr.limit, limit)},
			"%d slots, limit %d",
			capacity, limit)
		return
	}
	a.counts.Rings++
	flags := r.hdr.flags.Load()
	board := flags&ringBoard != 0
	if flags >= ringLeases<<1 {
		a.addFinding(ruleRing, part, []seen{seenWord(&r.hdr.flags, flags)}, "flags %#x", flags)
	}
	if !board {
		a.checkPositions(r, part)
		a.checkEnd(i, r, &r.hdr.senders, ringNoSenders, objectSenders)
		a.checkEnd(i, r, &r.hdr.receivers, ringNoReceivers, objectReceivers)
	}
	for k := uint64(0); k < slots && a.hasTime(); k++ {
		a.checkSlot(r, part, k, board)
	}
}

// checkPositions compares the tail with the head. The tail is a hint, which may be behind the head
// by the span of a put.
func (a *auditor) checkPositions(r *Ring, part string) {
	head := r.hdr.head.Load()
	tail := r.hdr.tail.Load()
	if n := int64(tail - head); r.hdr.head.Load() == head && (n > int64(r.cap) || n < -MaxBatch) {
		a.addFinding(rulePosition, part, []seen{seenWord(&r.hdr.head, head), seenWord(&r.hdr.tail, tail)},
			"head %d, tail %d, %d slots", head, tail, r.cap)
	}
}

// checkEnd checks that the token of an end exists unless the end is gone. The token must be read
// before the flag: an end's finaliser sets the flag before it frees the token.
func (a *auditor) checkEnd(i uint32, r *Ring, token *word.Word, gone uint64, kind objectKind) {
	v := token.Load()
	if h := Handle(v); a.isAllocated(h) {
		if e := a.d.blocks[h.Block()].ext.Load(); extKind(e) == kind && extOffset(e)/64 == uint64(i) ||
			h.Block() >= a.count || !a.isAllocated(h) {
			return
		}
	} else if h.IsWellFormed() && h.Block() >= a.count && uint64(h.Block()) < a.d.hdr.blocks.Load() {
		return // made since the pass began
	}
	flags := r.hdr.flags.Load()
	if flags&gone == 0 {
		a.addFinding(ruleEnd, fmt.Sprintf("ring %d", i), []seen{seenWord(token, v), seenWord(&r.hdr.flags, flags)},
			"%v is not its %s, and flags are %#x", Handle(v), kindNames[kind], flags)
	}
}

// checkSlot checks slot k of a ring. The head must be read before and after the slot's word, which
// is compared with the laps between the two.
func (a *auditor) checkSlot(r *Ring, ring string, k uint64, board bool) {
	a.counts.Slots++
	s := r.slot(k)
	first := r.hdr.head.Load()
	w := s.word.Load()
	last := r.hdr.head.Load()
	part := fmt.Sprintf("%s, slot %d", ring, k)
	observed := seenWord(s.word.Untyped(), uint64(w))
	if why := w.FindFault(); why != "" {
		a.addFinding(ruleSlot, part, []seen{observed}, "slot word %#x (%v): %s", uint64(w), w, why)
		return
	}
	ticket := func(head uint64) uint64 { return head + (k-head)&(r.cap-1) }
	if !board && (w.IsBefore(r.lap(ticket(first))-1) || w.IsAfter(r.lap(ticket(last))+1)) {
		a.addFinding(ruleLap, part, []seen{observed}, "%v, which is not a lap of its ring", w)
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
func (a *auditor) checkMessage(s *slot, w word.Slot, part string) {
	meta, opseq := s.meta.Load(), s.opseq.Load()
	blocks, wrong := a.readMessage(s, w, word.TOne)
	words := []seen{seenWord(s.word.Untyped(), uint64(w)), seenWord(&s.meta, meta)}
	if wrong != "" {
		a.addFinding(ruleMessage, part, words, "%v: %s", w, wrong)
		return
	}
	for _, i := range blocks {
		a.sure[i]++
	}
	// The lane's number must be read after the slot's.
	lane := meta >> 32
	if lane >= maxLanes || lane < a.countLanes() && opseq > a.d.recs[lane].opseq.Load() {
		if s.word.Load() == w {
			a.addFinding(rulePut, part, append(words, seenWord(&s.opseq, opseq)), "put %d of lane %d", opseq, lane)
		}
	}
}

// readMessage returns the indices of a message's blocks, and says what is wrong with the message.
// It returns neither if the slot's word is no longer w. least is the smallest legal transit field
// of the blocks. A message that is being put or got may be incomplete: with least 0, wrong handles
// are left out.
func (a *auditor) readMessage(s *slot, w word.Slot, least uint64) (blocks []uint32, wrong string) {
	meta := s.meta.Load()
	n := meta >> 8 & 0xff
	if meta>>16&0xffff > slotBody || n > slotBlocks || meta&0xff > metaSpill || meta&metaSpill != 0 && n != 1 {
		wrong, n = fmt.Sprintf("its length and blocks are %#x", meta&(1<<32-1)), 0
	}
	add := func(h Handle) {
		switch {
		case a.inTransit(h, least):
			blocks = append(blocks, h.Block())
		case !a.isNew(h):
			wrong = fmt.Sprintf("it has %v, which no message holds", h)
		}
	}
	for i := range n {
		add(Handle(s.blockWord(int(i)).Load()))
	}
	if meta&metaSpill != 0 && len(blocks) == 1 {
		wrong = a.readSpill(&a.d.blocks[blocks[0]], add, wrong)
	}
	slices.Sort(blocks)
	for k := 1; k < len(blocks); k++ {
		if blocks[k] == blocks[k-1] {
			wrong = fmt.Sprintf("it has block %d twice", blocks[k])
		}
	}
	if s.word.Load() != w {
		return nil, ""
	}
	if least == 0 {
		return slices.Compact(blocks), ""
	}
	return blocks, wrong
}

// readSpill calls add with each handle in the table of a spilled message in block b. It returns
// what is wrong with the table, or wrong. It is exempt from the race detector, because the block
// may be reused meanwhile.
//
//go:norace
func (a *auditor) readSpill(b *block, add func(Handle), wrong string) string {
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
		add(Handle(binary.LittleEndian.Uint64(p[8+8*i:])))
	}
	return wrong
}

// inTransit is [Domain.inTransit] for blocks that the pass covers.
func (a *auditor) inTransit(h Handle, least uint64) bool {
	return a.isAllocated(h) && a.d.blocks[h.Block()].w.Load()&word.TMask >= word.State(least)
}

// isNew reports whether h may be a block that was made since the pass began.
func (a *auditor) isNew(h Handle) bool {
	return h.IsWellFormed() && h.Block() >= a.count && uint64(h.Block()) < a.d.blockCount()
}

// countLanes returns the number of lane records that can be read.
func (a *auditor) countLanes() uint64 {
	n := min(a.d.hdr.lanes.Load(), word.MaxParticipants)
	if s, ok := a.d.store.(*examined); ok {
		n = min(n, s.countSeats())
	}
	return n * lanesPerSeat
}

// checkCell checks the words of a cell.
func (a *auditor) checkCell(i uint32, b *block) {
	p, part := a.bytes(b), fmt.Sprintf("lock %d", i)
	if len(p) < int(cellHead) {
		return // being made, or not backed
	}
	c := (*cell)(unsafe.Pointer(&p[0]))
	v := c.form.Load()
	form := Form(v)
	if v == 0 {
		return // being made
	}
	if formNames[form] == "" || v&^(0xff|formBounded) != 0 || uint64(len(p)) < form.size() {
		a.addFinding(ruleCell, part, []seen{seenWord(&c.form, v)}, "form %#x in %d bytes", v, len(p))
		return
	}
	a.counts.Locks++
	w := c.lock.Load()
	const reserved = 1<<word.SeatShift - 1 - word.LockLost
	free := w.State() == word.LockFree
	if free && w != 0 || w&reserved != 0 || !free && a.neverSeated(w.Seat(), uint64(w)) {
		a.addFinding(ruleLock, part, []seen{seenWord(c.lock.Untyped(), uint64(w))}, "lock word %#x (%v)", uint64(w), w)
	}
	if form == FormSemaphore {
		if v := c.state.Load(); v&(1<<12-1) > word.MaxParticipants {
			a.addFinding(ruleShare, part, []seen{seenWord(&c.state, v)}, "state %#x has no seat", v)
		}
	}
	if form.size() == uint64(cellHead) {
		return
	}
	for s := range c.shares {
		if v := c.shares[s].Load(); v&word.CountMask != 0 && a.neverSeated(s, v) {
			a.addFinding(ruleShare, fmt.Sprintf("%s, share %d", part, s), []seen{seenWord(&c.shares[s], v)},
				"process %d in epoch %d of the seat, %d times", v>>word.PIDShift, v>>word.EpochShift&word.EpochMask,
				v&word.CountMask)
		}
	}
}

// neverSeated reports whether no participant with this identity has ever been in the seat. The
// caller must have read the identity before, because the epoch of a seat only grows.
func (a *auditor) neverSeated(seat int, id uint64) bool {
	p := &a.d.parts[seat]
	w := p.state.Load()
	ahead := int32((uint32(id>>word.EpochShift) - w.Epoch()) << 10) // epochs in identities have 22 bits
	switch {
	case ahead > 0 || ahead == 0 && w.HasState(word.ParticipantFree):
		return true
	case ahead < 0:
		return id>>word.PIDShift == 0
	}
	pid := p.pid.Load()
	return id>>word.PIDShift != pid && p.state.Load() == w
}
