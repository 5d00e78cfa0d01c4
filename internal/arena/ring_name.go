package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Bind gives a message a name, under which every participant can look it up, also when this process
// is dead, until somebody unlinks it. The caller holds each block; they are distinct, and stay the
// caller's. The error is ErrExist if the name is taken, ErrName, ErrTooManyNames,
// ErrTooManyInTransit or ErrNoSpace. It waits for other processes' binds, and for their operations
// on the blocks, until ctx ends; a Bind that returns an error has bound nothing.
func (d *Domain) Bind(ctx context.Context, name string, body []byte, blocks []Handle) error {
	if err := d.bind(ctx, name, body, blocks); err != nil {
		return fmt.Errorf("bind name %q: %w", name, err)
	}
	return nil
}

func (d *Domain) bind(ctx context.Context, name string, body []byte, blocks []Handle) error {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: it has %d bytes, and a name has 1 to %d bytes of UTF-8", ErrName, len(name), MaxName)
	}
	for _, h := range blocks {
		if _, err := d.check(h); err != nil {
			return err
		}
	}
	r, err := d.board(ctx, true)
	if err != nil {
		return err
	}
	defer d.Release(r.h)
	all := append([]Handle{r.h}, blocks...)
	if len(makeLabel(name, body)) <= slotBody && len(all) <= slotBlocks {
		return r.putName(ctx, &parcel{name: name, body: makeLabel(name, body), table: all, blocks: all})
	}
	h, err := d.spill(ctx, body, all)
	if err != nil {
		return err
	}
	defer d.Release(h)
	return r.putName(ctx, &parcel{name: name, body: makeLabel(name, nil), table: []Handle{h}, blocks: append(all, h),
		flags: metaSpill})
}

// putName puts a name's message on the board.
func (r *Ring) putName(ctx context.Context, p *parcel) error {
	err := r.put(ctx, p)
	if errors.Is(err, ErrTooManyInTransit) && r.b.w.Load().transit() == maxTransit {
		return ErrTooManyNames
	}
	return err
}

// Lookup copies the message that has the name. This process then holds each of its blocks once
// more, as after a get. The error is ErrNotExist if nobody has bound the name. Where a process is
// stopped while it frees or replaces the board, Lookup waits for a second at most.
func (d *Domain) Lookup(name string, m *Message) error {
	err := d.named(name, func(l *lane, r *Ring) error { return r.copyName(l, name, m) })
	if err != nil {
		return fmt.Errorf("look up name %q: %w", name, err)
	}
	return nil
}

// Unlink frees a name. A process that has looked it up goes on with what it holds. The error is
// ErrNotExist if nobody has bound the name. Where a process is stopped while it frees or replaces
// the board, Unlink waits for a second at most. Where one is stopped in the middle of a put of a
// block that had the name, the block is free only when that process goes on.
func (d *Domain) Unlink(name string) error {
	var m Message
	err := d.named(name, func(l *lane, r *Ring) error { return r.takeName(l, name, &m) })
	if err != nil {
		return fmt.Errorf("unlink name %q: %w", name, err)
	}
	m.Discard()
	return nil
}

// named runs an operation on the board, if there is one.
func (d *Domain) named(name string, f func(*lane, *Ring) error) error {
	r, err := d.board(briefly, false)
	if err != nil {
		return err
	}
	defer d.Release(r.h)
	l, err := d.enter()
	if err != nil {
		return err
	}
	defer l.unlock()
	return f(l, r)
}

// Names returns the domain's names, sorted. Others may bind and unlink meanwhile.
func (d *Domain) Names() (names []string) {
	d.named("", func(_ *lane, r *Ring) error {
		r.each(func(s *slot, w slotWord) {
			label, err := s.label(nil)
			if w.state() == slotFull && err == nil && s.word.Load() == w {
				names = append(names, string(label[1:1+label[0]]))
			}
		})
		return nil
	})
	slices.Sort(names)
	return names
}
