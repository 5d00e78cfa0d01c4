package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// A sight is what one look saw.
type sight struct {
	census domains.Census
	err    error
}

// firstLook is short, so that the screen is soon full.
const firstLook = 200 * time.Millisecond

// watch shows a screen until the person at it has seen enough. However it ends, the terminal is as
// it was.
func watch(ctx context.Context, t *terminal, every time.Duration, see look) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := catch()
	defer t.leave()
	if err := t.enter(); err != nil {
		return err
	}
	sights, typed := make(chan sight), make(chan []byte)
	go t.look(ctx, every, see, sights)
	go t.read(ctx, typed)
	s := newScreen(faceOf())
	var pending []byte         // of a key that has not come whole
	var alone <-chan time.Time // when an escape is the key of that name, however many looks there are
	for {
		if err := t.show(s); err != nil {
			return err
		}
		last := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case c := <-sights:
			if c.err != nil {
				return c.err
			}
			s.see(c.census)
		case b := <-typed:
			if b == nil {
				return fmt.Errorf("the terminal has closed: %w", io.ErrUnexpectedEOF)
			}
			pending = append(pending, b...)
			alone = time.After(50 * time.Millisecond)
		case <-alone:
			last = true
		case g := <-signals:
			if err := t.obey(ctx, g); err != nil {
				return err
			}
		}
		for {
			k, n := decode(pending, last)
			if n == 0 {
				break
			}
			pending = pending[n:]
			switch {
			case k == keyInterrupt:
				interrupt()
			case k == keyStop:
				if err := t.stop(); err != nil {
					return err
				}
			case s.press(k):
				return nil
			}
		}
	}
}

// look looks again and again.
func (t *terminal) look(ctx context.Context, every time.Duration, see look, sights chan<- sight) {
	defer t.guard()
	for span := min(every, firstLook); ; span = every {
		c, err := see(ctx, span)
		select {
		case sights <- sight{c, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// read reads what is typed. Nothing ends a read of a terminal but a key, so it may outlive the
// screen.
func (t *terminal) read(ctx context.Context, typed chan<- []byte) {
	defer t.guard()
	for {
		b := make([]byte, 256)
		n, err := t.in.Read(b)
		if err != nil || n == 0 {
			b, n = nil, 0
		}
		select {
		case typed <- b[:n:n]:
		case <-ctx.Done():
			return
		}
		if b == nil {
			return
		}
	}
}

// A terminal that knows these marks shows what is between them at once. Others pass them over.
const (
	begin = "\x1b[?2026h\x1b[H"
	end   = "\x1b[?2026l"
)

// show writes a frame over the last one.
func (t *terminal) show(s *screen) error {
	width, height := t.size()
	lines := s.frame(width, height)
	var b strings.Builder
	b.WriteString(begin)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[2K" + l)
	}
	if len(lines) < height { // else it would take the last character
		b.WriteString("\x1b[J")
	}
	b.WriteString(end)
	_, err := t.out.WriteString(b.String())
	return err
}
