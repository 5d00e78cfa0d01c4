package top

import (
	"os"
	"sync"

	"golang.org/x/term"
)

const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"        // the other screen, without a cursor; long lines stay lines
	leave = "\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l" // back
)

// A terminal is one that a screen takes for a while, and gives back as it was.
type terminal struct {
	in, out *os.File
	mu      sync.Mutex
	before  *term.State // nil while the terminal is as it was
}

// enter takes the terminal. It is called again after a stop, when the shell may have changed it.
func (t *terminal) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return err
	}
	if t.before == nil {
		t.before = s
	}
	_, err = t.out.WriteString(enter)
	return err
}

// leave gives the terminal back. Its errors say that there is no terminal any more.
func (t *terminal) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		return
	}
	t.out.WriteString(leave)
	term.Restore(int(t.in.Fd()), t.before)
	t.before = nil
}

// guard is deferred by each goroutine beside the one that defers leave, so that a panic is printed
// where a person can read it.
func (t *terminal) guard() {
	if p := recover(); p != nil {
		t.leave()
		panic(p)
	}
}

// size returns 80 by 24 for a terminal that does not know its own.
func (t *terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
