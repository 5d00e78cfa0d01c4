package ipc

import (
	"errors"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A hold is a set of block references owned by this process, with a view of the object in these
// blocks. Operations on the object are counted. After close, no operation can start, and the
// references are released when the last operation has ended and no lock is held.
type hold struct {
	d      *arena.Domain
	blocks []arena.Handle
	view   interface{ Close() } // nil if the object has no blocking operations

	peers *peers // holds of the same synchronization object; or nil

	users atomic.Int64 // operations, plus holdKept per held lock, plus the two flags
}

const (
	holdKept     = 1 << 32
	holdKeptMask = 1<<60 - holdKept
	holdClosed   = 1 << 62
	holdReleased = 1 << 61
)

// beginOp begins an operation. It returns [ErrClosed] if h is closed; otherwise the caller must
// call endOp or keepHeld.
func (h *hold) beginOp() error {
	_, err := h.beginOpAlone()
	return err
}

// beginOpAlone is like beginOp, and also reports whether no other operation or lock is in
// progress. Until the caller calls endOp, no other call returns true, so the caller may use
// state that belongs to a single operation.
func (h *hold) beginOpAlone() (alone bool, err error) {
	n := h.users.Add(1)
	if n&holdClosed != 0 {
		h.endOp()
		return false, ErrClosed
	}
	return n == 1, nil
}

// keepHeld turns the caller's operation into a held lock or lease, which lasts until dropHeld or
// tryDropHeld. The caller must not call endOp for that operation.
func (h *hold) keepHeld() { h.users.Add(holdKept - 1) }

// isHolding reports whether this hold has a lock or a lease that was not dropped yet.
func (h *hold) isHolding() bool { return h.users.Load()&holdKeptMask != 0 }

func (h *hold) dropHeld() { h.tryDropHeld() }

// tryDropHeld drops one held lock or lease, and reports whether there was one. If it was the
// last use of a closed hold, tryDropHeld releases the references.
func (h *hold) tryDropHeld() bool {
	for {
		n := h.users.Load()
		if n&holdKeptMask == 0 {
			return false
		}
		if h.users.CompareAndSwap(n, n-holdKept) {
			if n-holdKept == holdClosed {
				h.releaseBlocks()
			}
			return true
		}
	}
}

func (h *hold) endOp() {
	if h.users.Add(-1) == holdClosed {
		h.releaseBlocks()
	}
}

// close wakes the blocked operations, and releases the references once the last operation and
// lock have ended. It is idempotent. It returns the error of releasing the references if it
// released them itself, and nil otherwise.
func (h *hold) close() error {
	if h.users.Or(holdClosed)&holdClosed != 0 {
		return nil
	}
	if h.view != nil {
		h.view.Close()
	}
	if h.users.Load() == holdClosed {
		return h.releaseBlocks()
	}
	return nil
}

func (h *hold) releaseBlocks() (err error) {
	if !h.users.CompareAndSwap(holdClosed, holdClosed|holdReleased) {
		return nil
	}
	h.peers.removeHold(h)
	for _, b := range h.blocks {
		err = errors.Join(err, h.d.Release(b))
	}
	if errors.Is(err, arena.ErrClosed) {
		return nil // the domain was closed before
	}
	return err
}
