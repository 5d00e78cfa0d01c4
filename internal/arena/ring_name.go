package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Bind binds a message to a name. Every participant can look the name up until it is unlinked, even
// after this process is dead. The caller must hold each block, keeps its references, and must not
// pass a block twice. Bind waits until ctx ends for other processes' binds, and for their
// operations on the blocks.
//
// It returns [ErrExist] if the name is taken, [ErrName] if the name is not 1 to [MaxName] bytes of
// UTF-8, [ErrTooManyNames], [ErrTooManyInTransit] or [ErrNoSpace]. A Bind that returns an error has
// bound nothing.
func (d *Domain) Bind(ctx context.Context, name string, body []byte, blocks []Handle) error {
	if err := d.bindName(ctx, name, body, blocks); err != nil {
		return fmt.Errorf("bind name %q: %w", name, err)
	}
	return nil
}

func (d *Domain) bindName(ctx context.Context, name string, body []byte, blocks []Handle) error {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: got %d bytes, want 1 to %d bytes of UTF-8", ErrName, len(name), MaxName)
	}
	for _, h := range blocks {
		if _, err := d.checkHandle(h); err != nil {
			return err
		}
	}
	r, err := d.acquireBoard(ctx, true)
	if err != nil {
		return err
	}
	defer d.Release(r.h)
	all := append([]Handle{r.h}, blocks...)
	if len(makeLabel(name, body)) <= layout.SlotBody && len(all) <= layout.SlotBlocks {
		return r.putName(ctx, &outgoing{name: name, body: makeLabel(name, body), table: all, blocks: all})
	}
	h, err := d.spillMessage(ctx, body, all)
	if err != nil {
		return err
	}
	defer d.Release(h)
	return r.putName(ctx, &outgoing{name: name, body: makeLabel(name, nil), table: []Handle{h}, blocks: append(all, h),
		flags: layout.MetaSpill})
}

// putName puts a name's message on the board. It returns [ErrTooManyNames] if the board is full.
func (r *Ring) putName(ctx context.Context, p *outgoing) error {
	err := r.publish(ctx, p)
	if errors.Is(err, ErrTooManyInTransit) && r.b.State.Load().TransitCount() == word.MaxTransit {
		return ErrTooManyNames
	}
	return err
}

// Lookup copies the message bound to the name into m. This process then holds each of the
// message's blocks once more and must release them, as after a get. It returns [ErrNotExist] if
// the name is not bound, and [ErrCorrupt] if its message is invalid. If a process is stopped
// while it frees or replaces the board, Lookup waits for at most one second.
func (d *Domain) Lookup(name string, m *Message) error {
	err := d.withBoard(name, func(l *lane, r *Ring) error { return r.copyName(l, name, m) })
	if err != nil {
		return fmt.Errorf("look up name %q: %w", name, err)
	}
	return nil
}

// Unlink removes a name. A process that has looked the name up keeps its references. It returns
// [ErrNotExist] if the name is not bound. If a process is stopped while it frees or replaces the
// board, Unlink waits for at most one second. If a process is stopped in the middle of a put of one
// of the name's blocks, that block is not freed before the process continues.
func (d *Domain) Unlink(name string) error {
	var m Message
	err := d.withBoard(name, func(l *lane, r *Ring) error { return r.takeName(l, name, &m) })
	if err != nil {
		return fmt.Errorf("unlink name %q: %w", name, err)
	}
	m.Discard()
	return nil
}

// withBoard calls f with the board and a lane, which are valid until f returns, and returns f's
// error. It returns [ErrNotExist] if there is no board, and [ErrClosed] if the domain is closed.
// name is not used.
func (d *Domain) withBoard(name string, f func(*lane, *Ring) error) error {
	r, err := d.acquireBoard(briefly, false)
	if err != nil {
		return err
	}
	defer d.Release(r.h)
	l, err := d.acquireLane()
	if err != nil {
		return err
	}
	defer l.unlock()
	return f(l, r)
}

// Names returns the domain's names, sorted. Other participants may bind and unlink names meanwhile.
func (d *Domain) Names() (names []string) {
	d.withBoard("", func(_ *lane, r *Ring) error {
		r.forEachSlot(func(s *layout.Slot, w word.Slot) {
			label, err := s.ReadLabel(nil)
			if w.State() == word.SlotFull && err == nil && s.Word.Load() == w {
				names = append(names, string(label[1:1+label[0]]))
			}
		})
		return nil
	})
	slices.Sort(names)
	return names
}
