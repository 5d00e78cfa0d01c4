package ipc

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Memory is a fixed number of bytes of shared memory, with or without a name: Python's
// SharedMemory. It travels to other processes. tensor.FromBuffer makes tensors of it. The zero
// Memory is closed.
type Memory struct{ region *region }

// A region is what a Memory holds, and what the garbage collector is asked about: the Memory itself
// may be copied.
type region struct {
	*hold
	bytes []byte
}

// newRegion makes a region of a reference of h, which it releases if it cannot. The error is
// ErrSize if the block is smaller.
func newRegion(d *arena.Domain, h arena.Handle, size uint64) (*region, error) {
	b, err := d.Bytes(h)
	if err == nil && size > uint64(len(b)) {
		err = fmt.Errorf("memory of %d bytes in a block of %d: %w", size, len(b), ErrSize)
	}
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	r := &region{&hold{d: d, blocks: []arena.Handle{h}}, b[:size:size]}
	runtime.AddCleanup(r, func(h *hold) { h.close() }, r.hold)
	return r, nil
}

// NewMemory makes a memory of size zero bytes and gives it a name, or none if name is empty. The
// caller closes it, and unlinks the name. Another process opens it by Lookup[*Memory]. The error is
// ErrSize if size is below 0, and shm.ErrExist if the name is taken.
func NewMemory(name string, size int) (*Memory, error) {
	if size < 0 {
		return nil, fmt.Errorf("new memory of %d bytes: %w", size, ErrSize)
	}
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	h, err := d.Alloc(size)
	if err != nil {
		return nil, fmt.Errorf("new memory: %w", err)
	}
	r, err := newRegion(d, h, uint64(size))
	if err != nil {
		return nil, err
	}
	clear(r.bytes)
	m := &Memory{r}
	if name == "" {
		return m, nil
	}
	if err := Bind(arena.Briefly, name, m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// open reports whether m is neither zero nor closed.
func (m *Memory) open() bool { return m.region != nil && m.region.users.Load()&holdClosed == 0 }

// Bytes returns the bytes, nil if m is closed. The slice is borrowed: m must stay open and
// reachable while it is used. Other processes may read and write it at the same time.
func (m *Memory) Bytes() []byte {
	if !m.open() {
		return nil
	}
	return m.region.bytes
}

// Size returns the number of bytes, 0 if m is closed.
func (m *Memory) Size() int { return len(m.Bytes()) }

// Close drops this process's reference. The name stays, and other processes go on with the memory.
// Close is idempotent; a process that dies closes what it has.
func (m *Memory) Close() error {
	if m.region == nil {
		return nil
	}
	defer runtime.KeepAlive(m.region)
	return m.region.close()
}

// memoryTags are those of [block, size].
var memoryTags = &codec.Tags{Type: "memory", Fields: []int{2}}

// marshalWire lets a memory be part of a value that is sent. Its receiver has one of its own, of
// the same bytes.
func (m *Memory) marshalWire(e *codec.Encoder) error {
	if m.region == nil || m.region.enter() != nil {
		return fmt.Errorf("send memory: %w", ErrClosed)
	}
	r := m.region
	e.OnDone(codec.WatcherFunc(func(bool) { r.leave() }))
	e.Tag(memoryTags, 0)
	e.Block(r.blocks[0])
	e.Uint(uint64(len(r.bytes)))
	return nil
}

// unmarshalWire is the counterpart of marshalWire. The error is ErrSize if the block has fewer
// bytes.
func (m *Memory) unmarshalWire(dec *codec.Decoder) error {
	d, err := arena.Default()
	if err != nil {
		return err
	}
	if err := dec.OnlyTag(memoryTags); err != nil {
		return err
	}
	h, err := dec.Block()
	if err != nil {
		return err
	}
	size, err := dec.Uint()
	if err != nil {
		return errors.Join(err, d.Release(h))
	}
	r, err := newRegion(d, h, size)
	if err != nil {
		return err
	}
	dec.OnDone(codec.WatcherFunc(func(kept bool) {
		if !kept {
			r.close()
		}
	}))
	m.region = r
	return nil
}
