package ipc

import (
	"errors"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A hold is some references of this process, and a view of what they are of. It is open until it is
// closed, and its references are released when the last operation on it is over.
type hold struct {
	d      *arena.Domain
	blocks []arena.Handle
	view   interface{ Close() } // nil where nobody waits

	peers *peers // the holds of the same object; nil where no lock is held by one of them for another

	users atomic.Int64 // operations going on, in steps of holdKept locks that are held, and holdClosed, holdReleased
}

const (
	holdKept     = 1 << 32
	holdKeptMask = 1<<60 - holdKept
	holdClosed   = 1 << 62
	holdReleased = 1 << 61
)

// enter begins an operation; each needs a leave, or a keep, unless enter returns ErrClosed.
func (h *hold) enter() error {
	_, err := h.enterAlone()
	return err
}

// enterAlone is enter that reports whether no other operation goes on. Until that one leaves, no
// other is told so.
func (h *hold) enterAlone() (alone bool, err error) {
	n := h.users.Add(1)
	if n&holdClosed != 0 {
		h.leave()
		return false, ErrClosed
	}
	return n == 1, nil
}

// keep makes of an operation something that lasts until it is dropped: a lock that is held.
func (h *hold) keep() { h.users.Add(holdKept - 1) }

func (h *hold) kept() bool { return h.users.Load()&holdKeptMask != 0 }

func (h *hold) drop() { h.tryDrop() }

// tryDrop is drop that reports whether there was something to drop.
func (h *hold) tryDrop() bool {
	for {
		n := h.users.Load()
		if n&holdKeptMask == 0 {
			return false
		}
		if h.users.CompareAndSwap(n, n-holdKept) {
			if n-holdKept == holdClosed {
				h.release()
			}
			return true
		}
	}
}

func (h *hold) leave() {
	if h.users.Add(-1) == holdClosed {
		h.release()
	}
}

// close ends the operations that wait, and releases the references once nobody uses them any more.
func (h *hold) close() error {
	if h.users.Or(holdClosed)&holdClosed != 0 {
		return nil
	}
	if h.view != nil {
		h.view.Close()
	}
	if h.users.Load() == holdClosed {
		return h.release()
	}
	return nil
}

func (h *hold) release() (err error) {
	if !h.users.CompareAndSwap(holdClosed, holdClosed|holdReleased) {
		return nil
	}
	h.peers.remove(h)
	for _, b := range h.blocks {
		err = errors.Join(err, h.d.Release(b))
	}
	if errors.Is(err, arena.ErrClosed) {
		return nil // the domain was closed before
	}
	return err
}
