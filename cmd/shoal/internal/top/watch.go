package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// A sight is the result of one observation.
type sight struct {
	census domains.Census
	err    error
}

// firstLook is the duration of the first observation. It is short, so that the screen appears
// quickly.
const firstLook = 200 * time.Millisecond

// runScreen runs the interactive screen until the user quits, when it returns nil, or ctx is
// done, when it returns the cause. It returns an error if an observation or the terminal fails.
// It always restores the terminal.
func runScreen(ctx context.Context, t *terminal, every time.Duration, see look) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := notifySignals()
	defer t.restoreMode()
	if err := t.enterRawMode(); err != nil {
		return err
	}
	sights, typed := make(chan sight), make(chan []byte)
	go t.observeLoop(ctx, every, see, sights)
	go t.read(ctx, typed)
	s := newScreen(faceOf())
	var pending []byte         // incomplete key sequence
	var alone <-chan time.Time // fires when a lone ESC must be the Escape key
	for {
		if err := t.drawFrame(s); err != nil {
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
			s.recordCensus(c.census)
		case b := <-typed:
			if b == nil {
				return fmt.Errorf("terminal closed: %w", io.ErrUnexpectedEOF)
			}
			pending = append(pending, b...)
			alone = time.After(50 * time.Millisecond)
		case <-alone:
			last = true
		case g := <-signals:
			if err := t.handleSignal(ctx, g); err != nil {
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
				interruptGroup()
			case k == keyStop:
				if err := t.stop(); err != nil {
					return err
				}
			case s.handleKey(k):
				return nil
			}
		}
	}
}

// observeLoop observes repeatedly and sends the results until ctx is done or an observation
// fails. A failure is sent, too.
func (t *terminal) observeLoop(ctx context.Context, every time.Duration, see look, sights chan<- sight) {
	defer t.restoreOnPanic()
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

// read sends the terminal input until ctx is done, and a nil slice if the terminal is closed. A
// blocked read can only be ended by a key, so the goroutine may outlive the screen.
func (t *terminal) read(ctx context.Context, typed chan<- []byte) {
	defer t.restoreOnPanic()
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

// Synchronized output: a terminal that supports it displays everything between the two sequences at
// once. Others ignore them.
const (
	begin = "\x1b[?2026h\x1b[H"
	end   = "\x1b[?2026l"
)

// drawFrame draws a frame over the previous one.
func (t *terminal) drawFrame(s *screen) error {
	width, height := t.size()
	lines := s.renderFrame(width, height)
	var b strings.Builder
	b.WriteString(begin)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[2K" + l)
	}
	if len(lines) < height { // otherwise it would erase the last character
		b.WriteString("\x1b[J")
	}
	b.WriteString(end)
	_, err := t.out.WriteString(b.String())
	return err
}
