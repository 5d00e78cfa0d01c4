package ipc

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Memory is a fixed-size byte buffer in shared memory, with or without a name, like Python's
// SharedMemory. It can be sent to other processes. tensor.FromBuffer returns tensors that share it.
// The zero Memory is closed.
type Memory struct{ region *region }

// A region is the state of a Memory. Its cleanup releases the block when the region becomes
// unreachable. The cleanup is not attached to the Memory, because a Memory may be copied.
type region struct {
	*hold
	bytes []byte
}

// newRegion returns a region of the first size bytes of block h. It owns the caller's reference
// to h. On error it releases the reference. It returns [ErrSize] if the block is smaller than
// size.
func newRegion(d *arena.Domain, h arena.Handle, size uint64) (*region, error) {
	b, err := d.Bytes(h)
	if err == nil && size > uint64(len(b)) {
		err = fmt.Errorf("memory has %d bytes, its block only %d: %w", size, len(b), ErrSize)
	}
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	r := &region{&hold{d: d, blocks: []arena.Handle{h}}, b[:size:size]}
	runtime.AddCleanup(r, func(h *hold) { h.close() }, r.hold)
	return r, nil
}

// NewMemory returns a Memory of size zero bytes, and binds it to name unless name is empty. The
// caller must close it, and must unlink the name. Other processes open it with Lookup[*Memory]. It
// returns [ErrSize] if size is negative, and shm.ErrExist if the name is already bound.
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

// isOpen reports whether m is neither zero nor closed.
func (m *Memory) isOpen() bool { return m.region != nil && m.region.users.Load()&holdClosed == 0 }

// Bytes returns the buffer, or nil if m is closed. The slice aliases the shared memory, so m must
// stay open and reachable while the slice is in use. Other processes may read and write the buffer
// concurrently.
func (m *Memory) Bytes() []byte {
	if !m.isOpen() {
		return nil
	}
	return m.region.bytes
}

// Size returns the buffer's length in bytes, or 0 if m is closed.
func (m *Memory) Size() int { return len(m.Bytes()) }

// Close releases this process's reference. The name and the references of other processes remain
// valid. Close is idempotent. The references of a process that dies are released.
func (m *Memory) Close() error {
	if m.region == nil {
		return nil
	}
	defer runtime.KeepAlive(m.region)
	return m.region.close()
}

// memoryTags describes the encoding: [block, size].
var memoryTags = &codec.Tags{Type: "memory", Fields: []int{2}}

// marshalWire encodes a reference to the block. The receiver gets its own reference to the same
// bytes.
func (m *Memory) marshalWire(e *codec.Encoder) error {
	if m.region == nil || m.region.beginOp() != nil {
		return fmt.Errorf("send memory: %w", ErrClosed)
	}
	r := m.region
	e.OnDone(codec.WatcherFunc(func(bool) { r.endOp() }))
	e.Tag(memoryTags, 0)
	e.Block(r.blocks[0])
	e.Uint(uint64(len(r.bytes)))
	return nil
}

// unmarshalWire decodes a Memory, which owns a reference to the block. It returns [ErrSize] if
// the block is smaller than the encoded size.
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
