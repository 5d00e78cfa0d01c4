package top

import (
	"os"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

type (
	Face    = face
	Key     = key
	History = history
	Look    = look
)

const (
	Begin, End   = begin, end
	Enter, Leave = enter, leave
	Span         = span
)

var (
	RunWith = run
	Decode  = decode
	FaceOf  = faceOf
	Views   = len(views)
)

// Keys, by name.
var Keys = map[string]Key{"up": keyUp, "down": keyDown, "left": keyLeft, "right": keyRight, "home": keyHome,
	"end":  keyEnd,
	"pgup": keyPageUp, "pgdn": keyPageDown, "enter": keyEnter, "esc": keyEscape, "tab": keyTab, "backtab": keyBackTab,
	"backspace": keyBackspace, "erase": keyErase, "interrupt": keyInterrupt, "stop": keyStop, "unknown": keyUnknown}

// A Screen is one that a test presses keys at.
type Screen struct{ s *screen }

func NewScreen(f Face) Screen                                 { return Screen{newScreen(f)} }
func (s Screen) See(c domains.Census)                         { s.s.recordCensus(c) }
func (s Screen) Frame(width, height int) []string             { return s.s.renderFrame(width, height) }
func (s Screen) PressKey(k Key) (quit bool)                   { return s.s.handleKey(k) }
func (h *history) Add(c domains.Census)                       { h.add(c) }
func (h *history) Trend(name string, w, u int, a bool) string { return h.drawTrend(name, w, u, a) }

// Series counts what a history keeps.
func (h *history) Series() int { return len(h.series) }

// HasScreen reports whether there would be a screen.
func (o Options) HasScreen(out *os.File) bool { return o.hasScreen(out) }
