package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/cudriver"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// Memory is an allocation on a device: a reference of the block that stands for it, and one of its segment's.
type Memory struct {
	*segment
	block     shm.Handle
	off, size int
	ended     atomic.Bool
}

// Device returns the device.
func (m *Memory) Device() tensor.Device { return m.dev }

// Size returns the bytes.
func (m *Memory) Size() int { return m.size }

// Pointer returns the address on the device, for other libraries of this process. It means nothing in another one.
func (m *Memory) Pointer() uint64 { return uint64(m.base) + uint64(m.off) }

// at returns the address of a byte. It panics where the n bytes from it on are not the allocation's.
func (m *Memory) at(off, n int) cudriver.Ptr {
	if off < 0 || n < 0 || n > m.size-off {
		panic(fmt.Sprintf("cuda: bytes %d to %d of an allocation of %d", off, off+n, m.size))
	}
	return m.base + cudriver.Ptr(m.off+off)
}

// Write copies from the host.
func (m *Memory) Write(off int, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return m.dev.do(func(s cudriver.Stream) error {
		err := m.dev.driver.MemcpyHtoDAsync(m.at(off, len(src)), src, s)
		return errors.Join(err, m.dev.driver.StreamSynchronize(s))
	})
}

// Read copies to the host.
func (m *Memory) Read(dst []byte, off int) error {
	if len(dst) == 0 {
		return nil
	}
	return m.dev.do(func(s cudriver.Stream) error {
		err := m.dev.driver.MemcpyDtoHAsync(dst, m.at(off, len(dst)), s)
		return errors.Join(err, m.dev.driver.StreamSynchronize(s))
	})
}

// Fill repeats a pattern. What CUDA has no fill for is copied from the host.
func (m *Memory) Fill(off, n int, pattern []byte) error {
	if n == 0 {
		return nil
	}
	narrow := pattern
	for len(narrow) > 1 && bytes.Equal(narrow[:len(narrow)/2], narrow[len(narrow)/2:]) {
		narrow = narrow[:len(narrow)/2]
	}
	p, driver := m.at(off, n), m.dev.driver
	return m.dev.do(func(s cudriver.Stream) error {
		switch len(narrow) {
		case 1:
			return driver.MemsetD8Async(p, narrow[0], uint64(n), s)
		case 2:
			return driver.MemsetD16Async(p, binary.NativeEndian.Uint16(narrow), uint64(n/2), s)
		case 4:
			return driver.MemsetD32Async(p, binary.NativeEndian.Uint32(narrow), uint64(n/4), s)
		}
		return errors.Join(driver.MemcpyHtoDAsync(p, bytes.Repeat(narrow, n/len(narrow)), s), driver.StreamSynchronize(s))
	})
}

// Copy copies on the device, or from another device.
func (m *Memory) Copy(off int, src tensor.DeviceMemory, from, n int) error {
	o, ok := src.(*Memory)
	if !ok {
		return fmt.Errorf("%w: copy from %v to %v", ErrDevice, src.Device(), m.dev)
	}
	if n == 0 {
		return nil
	}
	to, at := m.at(off, n), o.at(from, n)
	if m.dev == o.dev {
		return m.dev.do(func(s cudriver.Stream) error { return m.dev.driver.MemcpyDtoDAsync(to, at, uint64(n), s) })
	}
	theirs, err := o.dev.use()
	if err == nil {
		err = o.dev.Synchronize()
	}
	if err != nil {
		return err
	}
	ours, err := m.dev.use()
	if err != nil {
		return err
	}
	return m.dev.do(func(s cudriver.Stream) error { // nobody but us keeps the source for the device
		err := m.dev.driver.MemcpyPeerAsync(to, ours.ctx, at, theirs.ctx, uint64(n), s)
		return errors.Join(err, m.dev.driver.StreamSynchronize(s))
	})
}

// Key is the block.
func (m *Memory) Key() any { return key{m.d, m.block} }

type key struct {
	d     *shm.Domain
	block shm.Handle
}

// End gives the references back. Where another process may use the memory again, this one's device has finished with it before.
func (m *Memory) End() (err error) {
	if m.ended.Swap(true) {
		return nil
	}
	if !m.mine {
		err = m.dev.Synchronize()
	}
	segments.Lock()
	m.refs--
	c := segments.client
	segments.Unlock()
	for _, b := range []shm.Handle{m.block, m.segment.block} {
		if failed := m.d.Release(b); !errors.Is(failed, shm.ErrClosed) {
			err = errors.Join(err, failed)
		}
	}
	if !m.mine && c != nil && m.d.Stale(m.segment.block) {
		err = errors.Join(err, c.sweep())
	}
	return err
}

// Marshal waits until the device has written what is sent, since this process may not be there any more when it is read, and writes the two
// blocks and the place.
func (m *Memory) Marshal(e *wire.Encoder) error {
	if d, err := shm.Default(); err != nil || d != m.d {
		return errors.Join(tensor.ErrDomain, err)
	}
	if err := m.dev.Synchronize(); err != nil {
		return err
	}
	e.ArrayLen(4)
	e.Block(m.segment.block)
	e.Block(m.block)
	e.Uint(uint64(m.off))
	e.Uint(uint64(m.size))
	return nil
}

func init() {
	tensor.RegisterPlaces("cuda", ParseDevice)
	tensor.RegisterDevice("cuda", func(d *wire.Decoder) (tensor.DeviceMemory, error) {
		m, err := read(d)
		if err != nil {
			return nil, fmt.Errorf("memory of a device: %w", err)
		}
		return m, nil
	})
}

// read returns what Marshal wrote.
func read(dec *wire.Decoder) (*Memory, error) {
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	if err := dec.ArrayOf(4); err != nil {
		return nil, err
	}
	var held [2]shm.Handle
	give := func(err error) (*Memory, error) {
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
	return &Memory{segment: s, block: held[1], off: int(off), size: int(size)}, nil
}

var _ tensor.DeviceMemory = (*Memory)(nil)
