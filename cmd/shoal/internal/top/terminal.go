package top

import (
	"os"
	"sync"

	"golang.org/x/term"
)

const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"        // alternate screen, hidden cursor, no line wrap
	leave = "\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l" // undoes enterRawMode
)

// A terminal is a terminal that can be switched to raw mode and back. Its methods may be called
// concurrently.
type terminal struct {
	in, out *os.File
	mu      sync.Mutex
	before  *term.State // nil unless in raw mode
}

// enterRawMode switches the terminal to raw mode and the alternate screen. It must also be called
// after the process was stopped, because the shell may have changed the mode.
func (t *terminal) enterRawMode() error {
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

// restoreMode restores the terminal. It does nothing if the terminal is not in raw mode. Errors
// are ignored: they mean that the terminal is gone.
func (t *terminal) restoreMode() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		return
	}
	t.out.WriteString(leave)
	term.Restore(int(t.in.Fd()), t.before)
	t.before = nil
}

// restoreOnPanic restores the terminal if the calling goroutine panics, so that the message is
// readable. Every goroutine other than the one that defers restoreMode must defer restoreOnPanic.
func (t *terminal) restoreOnPanic() {
	if p := recover(); p != nil {
		t.restoreMode()
		panic(p)
	}
}

// size returns the size of the terminal, or 80×24 if it is unknown.
func (t *terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
