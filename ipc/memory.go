package ipc

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/wire"
)

// A Memory is so many bytes of shared memory, mostly under a name: Python's SharedMemory. It travels to other processes,
// with or without a name. tensor.FromBuffer makes tensors of it. The zero Memory is closed.
type Memory struct{ lease *watched }

// A watched lease is closed when the garbage collector finds that nobody has it any more: the Memory itself may be copied.
type watched struct{ *lease }

func watch(l *lease) *watched {
	w := &watched{l}
	runtime.AddCleanup(w, func(l *lease) { l.close() }, l)
	return w
}

// A lease is one reference of a block, and how much of it is used.
type lease struct {
	d      *shm.Domain
	block  shm.Handle
	size   int
	closed atomic.Bool
}

// NewMemory makes a memory of size zeros, without a name. The caller closes it.
func NewMemory(size int) (*Memory, error) {
	if size < 0 {
		return nil, fmt.Errorf("new memory of %d bytes: %w", size, ErrSize)
	}
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	h, err := d.Alloc(size)
	if err != nil {
		return nil, err
	}
	m := &Memory{watch(&lease{d: d, block: h, size: size})}
	clear(m.Bytes())
	return m, nil
}

// Create makes a memory of size zeros and gives it a name. The caller closes it; somebody unlinks the name. The error is
// shm.ErrExist if the name is taken.
func Create(name string, size int) (*Memory, error) {
	m, err := NewMemory(size)
	if err != nil {
		return nil, err
	}
	if err := Bind(name, m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Open returns the memory that has the name. The caller closes it. The error is shm.ErrNotExist if the name is not bound,
// and ErrType if something else is.
func Open(name string) (*Memory, error) { return Lookup[*Memory](name) }

// Bytes returns the bytes, nil if m is closed. The slice is borrowed: m must stay open and reachable while it is used.
// Nothing keeps others from reading and writing at the same time.
func (m *Memory) Bytes() []byte {
	l := m.lease
	if l == nil || l.closed.Load() {
		return nil
	}
	b, err := l.d.Bytes(l.block)
	if err != nil {
		return nil // closed meanwhile
	}
	return b[:l.size:l.size]
}

// Size returns the number of bytes.
func (m *Memory) Size() int {
	if m.lease == nil {
		return 0
	}
	return m.lease.size
}

// Block returns the memory's block, its domain and the number of bytes; the block is 0 if m is closed. It makes a Memory a
// tensor.Buffer.
func (m *Memory) Block() (*shm.Domain, shm.Handle, int) {
	if m.lease == nil || m.lease.closed.Load() {
		return nil, 0, 0
	}
	return m.lease.d, m.lease.block, m.lease.size
}

// Close drops this process's reference. The name stays, and so do those who have the memory open. Close is idempotent; a
// process that dies closes what it has.
func (m *Memory) Close() error {
	if m.lease == nil {
		return nil
	}
	return m.lease.close()
}

func (l *lease) close() error {
	if l.closed.Swap(true) {
		return nil
	}
	if err := l.d.Release(l.block); err != nil && !errors.Is(err, shm.ErrClosed) {
		return fmt.Errorf("close memory: %w", err)
	}
	return nil
}

// MarshalWire lets a memory be part of a value that is sent. Whoever receives it has one of its own, of the same bytes.
func (m *Memory) MarshalWire(e *wire.Encoder) error {
	l := m.lease
	if l == nil || l.closed.Load() {
		return fmt.Errorf("send memory: %w", ErrClosed)
	}
	if err := l.d.Retain(l.block); err != nil { // until the message holds it
		return fmt.Errorf("send memory: %w", err)
	}
	e.OnDone(func(bool) { l.d.Release(l.block) })
	e.ArrayLen(2)
	e.Block(l.block)
	e.Uint(uint64(l.size))
	return nil
}

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrSize if the block has fewer bytes.
func (m *Memory) UnmarshalWire(dec *wire.Decoder) error {
	d, err := shm.Default()
	if err != nil {
		return err
	}
	if err := dec.ArrayOf(2); err != nil {
		return err
	}
	h, err := dec.Block()
	if err != nil {
		return err
	}
	l := &lease{d: d, block: h}
	dec.OnDone(func(kept bool) {
		if !kept {
			l.close()
		}
	})
	size, err := dec.Uint()
	if err != nil {
		return err
	}
	b, err := d.Bytes(h)
	if err != nil {
		return err
	}
	if size > uint64(len(b)) {
		return fmt.Errorf("receive a memory of %d bytes in a block of %d: %w", size, len(b), ErrSize)
	}
	l.size = int(size)
	m.lease = watch(l)
	return nil
}
