package ipc

import (
	"errors"
	"sync/atomic"

	"github.com/shoal-mp/shoal/shm"
)

// A hold is some references of this process, and a view of what they are of. It is open until it is closed, and its
// references are released when the last operation on it is over.
type hold struct {
	d      *shm.Domain
	blocks []shm.Handle
	view   interface{ Close() }

	users atomic.Int64 // operations going on, and holdClosed, holdReleased
}

const (
	holdClosed   = 1 << 62
	holdReleased = 1 << 61
)

// enter begins an operation; each needs a leave, unless enter returns ErrClosed.
func (h *hold) enter() error { return h.enterUnless(holdClosed) }

// reenter is enter for who is to end what keeps a hold in use that may be closed already.
func (h *hold) reenter() error { return h.enterUnless(holdReleased) }

func (h *hold) enterUnless(state int64) error {
	if h.users.Add(1)&state != 0 {
		h.leave()
		return ErrClosed
	}
	return nil
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
	h.view.Close()
	if h.users.Load() == holdClosed {
		return h.release()
	}
	return nil
}

func (h *hold) release() (err error) {
	if !h.users.CompareAndSwap(holdClosed, holdClosed|holdReleased) {
		return nil
	}
	for _, b := range h.blocks {
		err = errors.Join(err, h.d.Release(b))
	}
	if errors.Is(err, shm.ErrClosed) {
		return nil // the domain was closed before
	}
	return err
}
