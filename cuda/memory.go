package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// A memory is an allocation on a device. One that [segment.memory] made holds a reference to
// the allocation's block and one to its segment's block, which [memory.End] releases.
// [Device.foreignMemory] makes one for memory outside of the domain, without blocks.
type memory struct {
	*segment
	block     arena.Handle
	off, size int
	ended     atomic.Bool
	fate      *fate
}

// A fate is the state of an allocation in this process, shared by all memory values for that
// allocation: it may have arrived several times.
type fate struct {
	holders    int          // holders and open are guarded by segments
	open       int          // holders on which End has not been called
	uses       atomic.Int64 // number of uses by queued work
	unfinished atomic.Bool  // its sender ended before its device had written it
}

// memory returns a memory for an allocation of size bytes at offset off, and takes ownership of
// the reference to block. The caller must have incremented s.refs, and must hold the lock of
// segments.
func (s *segment) memory(block arena.Handle, off, size int) *memory {
	f := s.fates[block]
	if f == nil {
		f = new(fate)
		if s.fates == nil {
			s.fates = map[arena.Handle]*fate{}
		}
		s.fates[block] = f
	}
	f.holders++
	f.open++
	return &memory{segment: s, block: block, off: off, size: size, fate: f}
}

// releaseAllocation undoes [segment.memory] and decrements the reference count of the segment.
// It does not release the block. The caller must hold the lock of segments.
func (m *memory) releaseAllocation() {
	m.refs--
	if m.fate.holders--; m.fate.holders == 0 {
		delete(m.fates, m.block)
	}
}

// Device returns the device that the memory belongs to.
func (m *memory) Device() device.Device { return m.dev }

// Size returns the size in bytes.
func (m *memory) Size() int { return m.size }

// deviceAddress returns the device address, for other libraries in this process. It is not
// valid in other processes. It counts as a use by queued work.
func (m *memory) deviceAddress() uint64 { return uint64(m.addressAt(0, m.size)) }

// addressAt returns the device address of offset off, for queued work that uses n bytes from
// there on. It counts the use, and records an error for [Device.Synchronize] if the memory was
// never written. It panics if these bytes are not within the allocation.
func (m *memory) addressAt(off, n int) cudriver.Ptr {
	if off < 0 || n < 0 || n > m.size-off {
		panic(fmt.Sprintf("cuda: bytes %d to %d of an allocation of %d", off, off+n, m.size))
	}
	m.fate.uses.Add(1)
	if m.fate.unfinished.Load() {
		m.dev.recordLost(m)
	}
	return m.base + cudriver.Ptr(m.off+off)
}

// Write copies src from the host to the memory at offset off, and waits until the copy is done.
// It panics if the bytes are not within the allocation.
func (m *memory) Write(off int, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return m.dev.doAndSync(func(s cudriver.Stream) error {
		return m.dev.driver.MemcpyHtoDAsync(m.addressAt(off,
			len(src)), src, s)
	})
}

// Read copies memory at offset off to the host, and waits until the copy is done. The error
// wraps [ErrUnfinished] if the memory's sender ended before its device had written it. It
// panics if the bytes are not within the allocation.
func (m *memory) Read(dst []byte, off int) error {
	if len(dst) == 0 {
		return nil
	}
	err := m.dev.doAndSync(func(s cudriver.Stream) error {
		return m.dev.driver.MemcpyDtoHAsync(dst,
			m.addressAt(off, len(dst)), s)
	})
	return errors.Join(err, m.checkWritten())
}

// checkWritten returns an error that wraps [ErrUnfinished] if the sender's device never wrote the
// memory. The caller must wait for the device first, because the result is not known before.
func (m *memory) checkWritten() error {
	if m.fate.unfinished.Load() {
		return fmt.Errorf("%d bytes on %v: %w", m.size, m.dev, ErrUnfinished)
	}
	return nil
}

// Fill queues the filling of n bytes at offset off with repetitions of a pattern of 1, 2, 4, 8
// or 16 bytes. off and n must be multiples of its length. The driver fills patterns of up to 4
// bytes, and a kernel wider ones.
func (m *memory) Fill(off, n int, pattern []byte) error {
	if n == 0 {
		return nil
	}
	narrow := pattern
	for len(narrow) > 1 && bytes.Equal(narrow[:len(narrow)/2], narrow[len(narrow)/2:]) {
		narrow = narrow[:len(narrow)/2]
	}
	if len(narrow) > 4 {
		return m.fillWords(off, n, narrow)
	}
	p, driver := m.addressAt(off, n), m.dev.driver
	return m.dev.withContext(func(s cudriver.Stream) error {
		switch len(narrow) {
		case 1:
			return driver.MemsetD8Async(p, narrow[0], uint64(n), s)
		case 2:
			return driver.MemsetD16Async(p, binary.NativeEndian.Uint16(narrow), uint64(n/2), s)
		}
		return driver.MemsetD32Async(p, binary.NativeEndian.Uint32(narrow), uint64(n/4), s)
	})
}

// fillWords is [memory.Fill] for a pattern of whole 8-byte words. It queues a strided copy for
// each word of the pattern.
func (m *memory) fillWords(off, n int, pattern []byte) error {
	words := len(pattern) / 8
	for i := range words {
		out := tensorOperand{Memory: m, DType: tensor.Int64, Offset: off/8 + i, Shape: []int{n / len(pattern)},
			Strides: []int{words}}
		number := tensorOperand{DType: tensor.Int64}
		copy(number.Value[:], pattern[8*i:])
		if err := (engine{m.dev}).Map(&device.Op{Name: opCopy}, out, number); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies n bytes of src, from offset from, to offset off. It queues the copy if src is on
// the same device, and otherwise waits for it. It returns an error that wraps [ErrDevice] if
// src does not belong to this package.
func (m *memory) Copy(off int, src device.Memory, from, n int) error {
	o, ok := src.(*memory)
	if !ok {
		return fmt.Errorf("%w: copy from %v to %v", ErrDevice, src.Device(), m.dev)
	}
	if n == 0 {
		return nil
	}
	to, at := m.addressAt(off, n), o.addressAt(from, n)
	switch {
	case m.dev == o.dev:
		return m.dev.withContext(func(s cudriver.Stream) error {
			return m.dev.driver.MemcpyAsync(to, at, uint64(n),
				s)
		})
	case m.segment.host:
		return o.dev.copyBehind(m.dev, to, at, n)
	case o.segment.host:
		return m.dev.copyBehind(o.dev, to, at, n)
	}
	return m.dev.copyFrom(to, o, at, n)
}

// Key returns a comparable value that identifies the allocation in this process.
func (m *memory) Key() any {
	if m.end != nil {
		return address{m.dev, uint64(m.base) + uint64(m.off), m.size}
	}
	return key{m.d, m.block}
}

type key struct {
	d     *arena.Domain
	block arena.Handle
}

// End releases the references to the allocation. Other processes may reuse the memory afterwards,
// so the last End in this process first waits for the device, unless the memory is this process's
// own and the device has no pending waits for other devices. Further calls do nothing.
func (m *memory) End() (err error) {
	if m.ended.Swap(true) {
		return nil
	}
	if m.end != nil {
		if r := m.dev.ready.Load(); r != nil {
			err = m.dev.synchronize(r)
		}
		return errors.Join(err, m.end())
	}
	segments.Lock()
	m.fate.open--
	last := m.fate.open == 0
	segments.Unlock()
	if r := m.dev.ready.Load(); last && r != nil && (!m.mine || m.dev.pendingWaits() > 0) {
		err = m.dev.synchronize(r) // a caller that waits for the device learns of lost memory
	}
	return errors.Join(err, m.releaseRefs())
}

// releaseRefs releases the references to the allocation and its segment without waiting for the
// device.
func (m *memory) releaseRefs() (err error) {
	segments.Lock()
	m.releaseAllocation()
	segments.Unlock()
	err = errors.Join(releaseIgnoringLeave(m.d, m.block), releaseIgnoringLeave(m.d, m.segment.block))
	if !m.mine && m.d.Stale(m.segment.block) {
		err = errors.Join(err, sweepSegments())
	}
	return err
}

// These are the wire forms of memory. Both contain the blocks of the segment and of the allocation,
// the offset and the size. If the device was not idle, the message also contains the block of a
// clock, the life of the clock's process, and the number that the receiver's stream must wait for.
// See Note [An event that travels].
const (
	writtenMemory = iota
	awaitedMemory
)

var memoryTags = &codec.Tags{Type: "device's memory", Fields: []int{writtenMemory: 4, awaitedMemory: 7}}

// Marshal encodes the memory. The error wraps [ErrForeign] if the memory is not in a domain,
// [tensor.ErrDomain] if it is not in this process's domain, and [ErrUnfinished] if its own
// sender never wrote it.
func (m *memory) Marshal(e *codec.Encoder) error {
	if m.end != nil {
		return fmt.Errorf("send %d bytes on %v: %w", m.size, m.dev, ErrForeign)
	}
	d, err := arena.Default()
	if err != nil || d != m.d {
		return errors.Join(tensor.ErrDomain, err)
	}
	c, number, err := m.dev.advanceClock(d)
	if err = errors.Join(err, m.checkWritten()); err != nil {
		return err
	}
	if c == nil {
		e.Tag(memoryTags, writtenMemory)
		m.encodePlace(e)
		return nil
	}
	e.Tag(memoryTags, awaitedMemory)
	m.encodePlace(e)
	e.Block(c.block)
	e.Uint(uint64(c.life))
	e.Uint(uint64(number))
	return nil
}

func (m *memory) encodePlace(e *codec.Encoder) {
	e.Block(m.segment.block)
	e.Block(m.block)
	e.Uint(uint64(m.off))
	e.Uint(uint64(m.size))
}

func init() {
	device.Register("auto", device.Backend{Parse: parse})
	device.Register("cuda", device.Backend{
		EmptyCache: emptyCaches,
		Parse:      parse,
		Engine:     engineOf,
		Read: func(d *codec.Decoder) (device.Memory, error) {
			m, err := read(d)
			if err != nil {
				return nil, fmt.Errorf("memory of a device: %w", err)
			}
			return m, nil
		},
		Lock: lockPages,
		IPC:  legacy{},
	})
}

// read decodes memory that [memory.Marshal] encoded, and makes the device's stream wait for it.
// The caller must call the memory's End. The error wraps [ErrRange] if a value is out of range.
func read(dec *codec.Decoder) (*memory, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	form, err := dec.Tag(memoryTags)
	if err != nil {
		return nil, err
	}
	m, err := readPlace(dec, d)
	if err != nil || form == writtenMemory {
		return m, err
	}
	s := &sent{of: m, uses: m.fate.uses.Load()}
	if err = s.read(dec, d); err == nil {
		err = m.dev.awaitSent(s)
	}
	if err != nil {
		return nil, errors.Join(err, m.End())
	}
	return m, nil
}

// read decodes the clock and the number to wait for. On success, s holds the reference to the
// clock's block.
func (s *sent) read(dec *codec.Decoder, d *arena.Domain) error {
	block, err := dec.Block()
	if err != nil {
		return err
	}
	s.clockPage, err = clockPageOf(d, block)
	life, failed := dec.Uint()
	err = errors.Join(err, failed)
	number, failed := dec.Uint()
	err = errors.Join(err, failed)
	if err == nil && (number == 0 || number >= abandoned) {
		err = fmt.Errorf("%w: no clock has number %d", ErrRange, number)
	}
	if err != nil {
		return errors.Join(err, releaseIgnoringLeave(d, block))
	}
	s.life, s.want = arena.Handle(life), uint32(number)
	return nil
}

func readPlace(dec *codec.Decoder, d *arena.Domain) (*memory, error) {
	var err error
	var held [2]arena.Handle
	give := func(err error) (*memory, error) {
		for _, h := range held {
			if h != 0 {
				err = errors.Join(err, d.Release(h))
			}
		}
		return nil, err
	}
	for i := range held {
		if held[i], err = dec.Block(); err != nil {
			held[i] = 0
			return give(err)
		}
	}
	off, err := dec.Uint()
	if err != nil {
		return give(err)
	}
	size, err := dec.Uint()
	if err != nil {
		return give(err)
	}
	s, err := importSegment(d, held[0])
	if err != nil {
		return give(err)
	}
	if off > uint64(s.size) || size > uint64(s.size)-off {
		segments.Lock()
		s.refs--
		segments.Unlock()
		return give(fmt.Errorf("%w: %d bytes at %d of %d", ErrRange, size, off, s.size))
	}
	segments.Lock()
	defer segments.Unlock()
	return s.memory(held[1], int(off), int(size)), nil
}
