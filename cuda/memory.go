package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/tensor"
)

// A memory is an allocation on a device: a reference of the block that stands for it, and one of
// its segment's.
type memory struct {
	*segment
	block     shm.Handle
	off, size int
	ended     atomic.Bool
	fate      *fate
}

// A fate is what has become of an allocation in this process, at which it may have arrived several
// times.
type fate struct {
	holders    int          // under the lock of the segments, as open is
	open       int          // holders that have not begun to end
	uses       atomic.Int64 // by work that was queued
	unfinished atomic.Bool  // its sender has ended before its device had written it
}

// memory returns an allocation that is counted already. The segments are locked.
func (s *segment) memory(block shm.Handle, off, size int) *memory {
	f := s.fates[block]
	if f == nil {
		f = new(fate)
		if s.fates == nil {
			s.fates = map[shm.Handle]*fate{}
		}
		s.fates[block] = f
	}
	f.holders++
	f.open++
	return &memory{segment: s, block: block, off: off, size: size, fate: f}
}

// forget ends what memory began, under the same lock.
func (m *memory) forget() {
	m.refs--
	if m.fate.holders--; m.fate.holders == 0 {
		delete(m.fates, m.block)
	}
}

// Device returns the device.
func (m *memory) Device() device.Device { return m.dev }

// Size returns the bytes.
func (m *memory) Size() int { return m.size }

// pointer returns the address on the device, for other libraries of this process. It means nothing
// in another one.
func (m *memory) pointer() uint64 { return uint64(m.at(0, m.size)) }

// at returns the address of a byte, for work that is queued. It panics where the n bytes from it on
// are not the allocation's.
func (m *memory) at(off, n int) cudriver.Ptr {
	if off < 0 || n < 0 || n > m.size-off {
		panic(fmt.Sprintf("cuda: bytes %d to %d of an allocation of %d", off, off+n, m.size))
	}
	m.fate.uses.Add(1)
	if m.fate.unfinished.Load() {
		m.dev.lose(m)
	}
	return m.base + cudriver.Ptr(m.off+off)
}

// Write copies from the host.
func (m *memory) Write(off int, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return m.dev.ask(func(s cudriver.Stream) error { return m.dev.driver.MemcpyHtoDAsync(m.at(off, len(src)), src, s) })
}

// Read copies to the host. The error wraps ErrUnfinished where the sender of the memory ended
// before its device had written it.
func (m *memory) Read(dst []byte, off int) error {
	if len(dst) == 0 {
		return nil
	}
	err := m.dev.ask(func(s cudriver.Stream) error { return m.dev.driver.MemcpyDtoHAsync(dst, m.at(off, len(dst)), s) })
	return errors.Join(err, m.whole())
}

// whole returns ErrUnfinished of memory that does not hold what was sent. That is known when the
// device has finished.
func (m *memory) whole() error {
	if m.fate.unfinished.Load() {
		return fmt.Errorf("%d bytes on %v: %w", m.size, m.dev, ErrUnfinished)
	}
	return nil
}

// Fill repeats a pattern: one of up to four bytes by the driver, and a wider one by a kernel.
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
	p, driver := m.at(off, n), m.dev.driver
	return m.dev.do(func(s cudriver.Stream) error {
		switch len(narrow) {
		case 1:
			return driver.MemsetD8Async(p, narrow[0], uint64(n), s)
		case 2:
			return driver.MemsetD16Async(p, binary.NativeEndian.Uint16(narrow), uint64(n/2), s)
		}
		return driver.MemsetD32Async(p, binary.NativeEndian.Uint32(narrow), uint64(n/4), s)
	})
}

// fillWords repeats a pattern of words of eight bytes: each of them at every so many places.
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

// Copy copies on the device, or from another device.
func (m *memory) Copy(off int, src device.Memory, from, n int) error {
	o, ok := src.(*memory)
	if !ok {
		return fmt.Errorf("%w: copy from %v to %v", ErrDevice, src.Device(), m.dev)
	}
	if n == 0 {
		return nil
	}
	to, at := m.at(off, n), o.at(from, n)
	switch {
	case m.dev == o.dev:
		return m.dev.do(func(s cudriver.Stream) error { return m.dev.driver.MemcpyAsync(to, at, uint64(n), s) })
	case m.segment.host:
		return o.dev.copyBehind(m.dev, to, at, n)
	case o.segment.host:
		return m.dev.copyBehind(o.dev, to, at, n)
	}
	return m.dev.copyFrom(to, o, at, n)
}

// Key is the block.
func (m *memory) Key() any {
	if m.end != nil {
		return address{m.dev, uint64(m.base) + uint64(m.off), m.size}
	}
	return key{m.d, m.block}
}

type key struct {
	d     *shm.Domain
	block shm.Handle
}

// End gives the references back. Where another process may use the memory again, this one's device
// has finished with it before: the last holder sees to that, and to the clocks with which it came.
func (m *memory) End() (err error) {
	if m.ended.Swap(true) {
		return nil
	}
	if m.end != nil {
		if r := m.dev.ready.Load(); r != nil {
			err = m.dev.finish(r)
		}
		return errors.Join(err, m.end())
	}
	segments.Lock()
	m.fate.open--
	last := m.fate.open == 0
	segments.Unlock()
	if r := m.dev.ready.Load(); last && r != nil && (!m.mine || m.dev.awaits() > 0) {
		err = m.dev.finish(r) // a caller that waits for the device is told what was lost
	}
	return errors.Join(err, m.giveBack())
}

// giveBack is End when the device has finished.
func (m *memory) giveBack() (err error) {
	segments.Lock()
	m.forget()
	segments.Unlock()
	err = errors.Join(released(m.d, m.block), released(m.d, m.segment.block))
	if !m.mine && m.d.Stale(m.segment.block) {
		err = errors.Join(err, sweep())
	}
	return err
}

// The forms of memory in a message. Both have its segment, block, offset and size. Where the device
// is not idle there are also the block of a clock, the life of the clock's process, and the number
// that the receiver's stream waits for. See Note [An event that travels].
const (
	writtenMemory = iota
	awaitedMemory
)

var memoryTags = &wire.Tags{Type: "device's memory", Fields: []int{writtenMemory: 4, awaitedMemory: 7}}

// Marshal writes one of the forms of memory. The error wraps ErrForeign of memory that is not the
// domain's, and ErrUnfinished of memory that does not hold what was sent.
func (m *memory) Marshal(e *wire.Encoder) error {
	if m.end != nil {
		return fmt.Errorf("send %d bytes on %v: %w", m.size, m.dev, ErrForeign)
	}
	d, err := shm.Default()
	if err != nil || d != m.d {
		return errors.Join(tensor.ErrDomain, err)
	}
	c, number, err := m.dev.tick(d)
	if err = errors.Join(err, m.whole()); err != nil {
		return err
	}
	if c == nil {
		e.Tag(memoryTags, writtenMemory)
		m.place(e)
		return nil
	}
	e.Tag(memoryTags, awaitedMemory)
	m.place(e)
	e.Block(c.block)
	e.Uint(uint64(c.life))
	e.Uint(uint64(number))
	return nil
}

func (m *memory) place(e *wire.Encoder) {
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
		Read: func(d *wire.Decoder) (device.Memory, error) {
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

// read returns what Marshal wrote.
func read(dec *wire.Decoder) (*memory, error) {
	d, err := shm.Default()
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
		err = m.dev.await(s)
	}
	if err != nil {
		return nil, errors.Join(err, m.End())
	}
	return m, nil
}

// read holds the clock's block, but on an error.
func (s *sent) read(dec *wire.Decoder, d *shm.Domain) error {
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
		err = fmt.Errorf("%w: number %d of a clock", ErrRange, number)
	}
	if err != nil {
		return errors.Join(err, released(d, block))
	}
	s.life, s.want = shm.Handle(life), uint32(number)
	return nil
}

func readPlace(dec *wire.Decoder, d *shm.Domain) (*memory, error) {
	var err error
	var held [2]shm.Handle
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
