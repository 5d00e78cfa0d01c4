package top

import (
	"slices"
	"strings"
	"unicode"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// A screen is the state of the user interface and the data to show. It does no input or output,
// and only one goroutine may use it.
type screen struct {
	face
	shown   domains.Census // frozen while paused
	latest  domains.Census
	history history
	until   int // end of the trends, in observations
	paused  bool

	view    int
	places  [5]place // by view
	filter  string
	typing  bool   // the filter is being edited
	detail  string // key of the row in the detail view, or empty
	scroll  int    // lines scrolled off, in details and help
	help    bool
	page    int  // rows of the last frame
	waiting bool // before the first observation
}

// A place is the position and the sort order in a view.
type place struct {
	key     string // key of the selected row
	at      int    // its index, used if the row disappears
	top     int    // index of the first visible row
	sort    int    // column, or nothing for the natural order
	reverse bool
}

func newScreen(f face) *screen {
	s := &screen{face: f, waiting: true}
	for i := range s.places {
		s.places[i].sort = nothing
	}
	return s
}

// recordCensus records an observation. While the screen is paused, only the history is updated.
func (s *screen) recordCensus(c domains.Census) {
	s.history.add(c)
	s.latest, s.waiting = c, false
	if !s.paused {
		s.shown, s.until = c, s.history.n
	}
}

// handleKey handles a key. It reports whether the user wants to quit.
func (s *screen) handleKey(k key) (quit bool) {
	switch {
	case s.typing:
		s.editFilter(k)
	case k == 'q':
		return true
	case s.help:
		s.help = k == keyUnknown || s.scrollView(k)
	case k == '?' || k == 'h':
		s.help, s.scroll = true, 0
	case k == ' ':
		s.togglePause()
	case k == '/':
		s.typing, s.detail = true, ""
	case k >= '1' && k < '1'+key(len(views)):
		s.view, s.detail = int(k-'1'), ""
	case k == keyTab:
		s.view, s.detail = (s.view+1)%len(views), ""
	case k == keyBackTab:
		s.view, s.detail = (s.view+len(views)-1)%len(views), ""
	case s.detail != "":
		s.handleDetailKey(k)
	default:
		s.handleTableKey(k)
	}
	return false
}

func (s *screen) togglePause() {
	s.paused = !s.paused
	if !s.paused {
		s.shown, s.until = s.latest, s.history.n
	}
}

// editFilter handles a key while the filter is being edited.
func (s *screen) editFilter(k key) {
	switch {
	case k == keyEnter:
		s.typing = false
	case k == keyEscape:
		s.typing, s.filter = false, ""
	case k == keyErase:
		s.filter = ""
	case k == keyBackspace:
		r := []rune(s.filter)
		s.filter = string(r[:max(0, len(r)-1)])
	case k > 0 && unicode.IsPrint(rune(k)) && len(s.filter) < 100:
		s.filter += string(rune(k))
	}
}

func (s *screen) handleDetailKey(k key) {
	switch k {
	case keyEscape, keyEnter, keyLeft, keyBackspace:
		s.detail = ""
	default:
		s.scrollView(k)
	}
}

// scrollView scrolls the detail or help view. It reports whether k is a scrolling key.
func (s *screen) scrollView(k key) bool {
	switch k {
	case keyUp, 'k':
		s.scroll--
	case keyDown, 'j':
		s.scroll++
	case keyPageUp:
		s.scroll -= s.page
	case keyPageDown:
		s.scroll += s.page
	case keyHome, 'g':
		s.scroll = 0
	case keyEnd, 'G':
		s.scroll = 1 << 20
	default:
		return false
	}
	s.scroll = max(0, s.scroll) // scrollLines enforces the upper limit
	return true
}

func (s *screen) handleTableKey(k key) {
	p, rows := &s.places[s.view], s.sortedRows()
	at := chosenRow(p, rows)
	switch k {
	case keyUp, 'k':
		at--
	case keyDown, 'j':
		at++
	case keyPageUp:
		at -= s.page
	case keyPageDown:
		at += s.page
	case keyHome, 'g':
		at = 0
	case keyEnd, 'G':
		at = len(rows) - 1
	case keyEnter, keyRight:
		if len(rows) > 0 {
			s.detail, s.scroll = rows[at].key, 0
		}
		return
	case keyEscape:
		s.filter = ""
		return
	case 's':
		p.sort, p.reverse = s.nextColumn(p.sort), false
		return
	case 'P':
		s.sortBy(p, "CPUS")
		return
	case 'M':
		s.sortBy(p, "HOLDS", "SIZE")
		return
	case 'R':
		p.reverse = !p.reverse
		return
	default:
		return
	}
	if len(rows) > 0 {
		p.at = min(max(at, 0), len(rows)-1)
		p.key = rows[p.at].key
	}
}

// nextColumn returns the index of the next sort column after at. It skips trends, which cannot
// be sorted. After the last column it returns the constant [nothing], for the natural order.
func (s *screen) nextColumn(at int) int {
	for cs := s.visibleColumns(); at+1 < len(cs); {
		if at++; cs[at].title != trendTitle {
			return at
		}
	}
	return nothing
}

// sortBy sorts by the first of the given columns that the view has. If it has none, the order is
// unchanged.
func (s *screen) sortBy(p *place, titles ...string) {
	for _, t := range titles {
		if i := slices.IndexFunc(views[s.view].columns, func(c column) bool { return c.title == t }); i >= 0 {
			p.sort, p.reverse = i, false
			return
		}
	}
}

// visibleColumns returns the columns of the view. The program column is omitted if there is only
// one program.
func (s *screen) visibleColumns() []column {
	cs := views[s.view].columns
	if len(s.shown.Domains) < 2 {
		cs = cs[:len(cs)-1]
	}
	return cs
}

// sortedRows returns the rows of the view that match the filter, in the selected order.
func (s *screen) sortedRows() []row {
	rows := slices.DeleteFunc(views[s.view].rows(s), func(r row) bool { return !r.containsText(s.filter) })
	p := s.places[s.view]
	if p.sort != nothing {
		sortRows(rows, p.sort, p.reverse)
	} else if p.reverse {
		slices.Reverse(rows)
	}
	return rows
}

// chosenRow returns the index of the selected row, or of the row that is now in its position. It
// returns 0 if there are no rows.
func chosenRow(p *place, rows []row) int {
	if i := slices.IndexFunc(rows, func(r row) bool { return r.key == p.key }); i >= 0 {
		return i
	}
	return max(0, min(p.at, len(rows)-1))
}

// sortText describes the sort order of the view.
func (s *screen) sortText() string {
	p := s.places[s.view]
	name := "as found"
	if p.sort != nothing {
		name = strings.ToLower(views[s.view].columns[p.sort].title)
	}
	if p.reverse {
		name += ", reversed"
	}
	return name
}
