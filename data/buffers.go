package data

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// newBuffer returns a buffer for a batch. Shared memory is allocated at once, heap memory when the
// first worker uses it. The error wraps [arena.ErrNoSpace] if shared memory is full, or [ErrPlace]
// for samples on a device with worker processes.
func (l *Loader) newBuffer(lay layout, rows int, c executor) (*batchBuffer, error) {
	_, here := c.(*goroutineExecutor)
	if dev := lay.device(); dev != nil && l.opts.Kind == Processes && !here {
		return nil, deviceError(dev)
	}
	shared := !here && Kind(l.kind.Load()) != Goroutines || l.needsSharedMemory()
	f := planBatchBuffer(l, lay, rows, shared)
	if !shared {
		return f, nil
	}
	err := f.allocate()
	if errors.Is(err, arena.ErrNoSpace) && l.closeSpareBuffers() {
		err = f.allocate()
	}
	if errors.Is(err, arena.ErrNoSpace) && !l.opts.Reuse {
		// Finalizers return the memory of unreachable batches some time after the collection, so
		// this attempt may still fail. The batch is then tried again later.
		runtime.GC()
		err = f.allocate()
	}
	return f, err
}

// overwritesBatches reports whether the Loader overwrites delivered batches, as Options.Reuse asks.
func (l *Loader) overwritesBatches() bool { return l.opts.Reuse && !l.opts.Shared }

// needsSharedMemory reports whether batches must be in shared memory even if goroutines make them.
func (l *Loader) needsSharedMemory() bool { return l.opts.Shared || l.opts.PinMemory }

// reuseMemory gives f the memory of an earlier batch of the same layout, if there is one. It
// prefers the latest one, which is most likely in a cache.
func (l *Loader) reuseMemory(f *batchBuffer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, old := range slices.Backward(l.idle) {
		if old.rows == f.rows && old.shared == f.shared && old.layout.isEqual(f.layout) {
			f.batch, f.block = old.batch, old.block
			l.idle = slices.Delete(l.idle, i, i+1)
			return true
		}
	}
	return false
}

// pinBatch locks the pages of a batch, if Options.PinMemory is set and there is a device.
func (l *Loader) pinBatch(b Batch) error {
	if !l.opts.PinMemory {
		return nil
	}
	for _, t := range b {
		if t.Device() != nil {
			continue
		}
		if err := t.PinMemory(); err != nil && !errors.Is(err, tensor.ErrDevice) {
			return fmt.Errorf("batch: %w", err)
		}
	}
	return nil
}

// closeSpareBuffers closes the buffers kept for reuse, and reports whether there were any.
func (l *Loader) closeSpareBuffers() bool {
	l.mu.Lock()
	idle := l.idle
	l.idle = nil
	l.mu.Unlock()
	for _, f := range idle {
		f.releaseMemory()
	}
	return len(idle) > 0
}

// recycleBatch recycles the memory of a batch that is no longer used. The memory of a batch with
// skipped samples is freed instead, because its tensors have been replaced by views.
func (l *Loader) recycleBatch(s *batchState) {
	if s.buffer == nil || len(s.bad) > 0 || l.overwritesBatches() {
		closeAll(s.batch)
	}
	if s.buffer != nil && len(s.bad) > 0 {
		closeAll(s.buffer.batch)
	} else if s.buffer != nil {
		l.recycleBuffer(s.buffer)
	}
	s.buffer, s.batch = nil, nil
}

// recycleBuffer keeps a buffer for reuse, or closes it if enough are kept, if the Loader is closed,
// if batches belong to the consumer in shared memory, or if a worker may still write to the buffer.
func (l *Loader) recycleBuffer(f *batchBuffer) {
	l.mu.Lock()
	keep := f.batch != nil && !f.inUse && l.closed.Err() == nil && len(l.idle) <= l.maxAhead() &&
		!(f.shared && l.opts.Shared)
	if keep {
		l.idle = append(l.idle, f)
	}
	l.mu.Unlock()
	if !keep {
		closeAll(f.batch)
	}
}
