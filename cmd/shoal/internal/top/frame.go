package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// renderFrame renders the screen. It returns at most height lines, none wider than width cells,
// and sets s.page to the number of visible rows.
func (s *screen) renderFrame(width, height int) []string {
	top := s.headerLines(width, height)
	room := height - len(top)
	foot := height >= 8
	if foot {
		room--
	}
	s.page = max(1, room)
	var body []line
	switch {
	case s.help:
		body = s.scrollLines(helpText(), room)
	case s.detail != "":
		body = s.scrollLines(s.detailLines(width), room)
	default:
		body = s.tableLines(width, room)
	}
	all := append(top, body[:max(0, min(len(body), room))]...)
	if foot {
		for len(all) < height-1 {
			all = append(all, nil)
		}
		all = append(all, s.footerLine())
	}
	lines := []string{}
	for _, l := range all[:min(len(all), max(height, 0))] {
		lines = append(lines, l.render(width, s.face))
	}
	return lines
}

// headerLines returns the upper part of the screen: the machine, the deadlocks, the programs and
// the tabs.
func (s *screen) headerLines(width, height int) []line {
	all := s.alarmLines(max(1, height/4))
	all = append([]line{s.titleLine()}, all...)
	if height <= 2 && len(all) > 1 { // deadlocks matter more than the title
		return all[1:]
	}
	all = append(all, s.programLines(width, min(4, height/6), true)...)
	if height >= 6 {
		all = append(all, s.tabLine(width))
	}
	return all
}

func (s *screen) titleLine() line {
	processes := 0
	for _, d := range s.shown.Domains {
		processes += len(d.Processes)
	}
	l := line{{"shoal top", strong}}
	if s.paused {
		l = append(l, piece{" PAUSED", chosen})
	}
	if s.waiting {
		return append(l, piece{"  looking", plain})
	}
	m := s.shown.Machine
	n := len(s.shown.Domains)
	return append(l, piece{fmt.Sprintf("  CPUs %3.0f %% ", 100*m.Utilisation), plain},
		piece{s.trendText("CPUs", trendWidth), good},
		piece{fmt.Sprintf("  %s of %d processes, %.0f involuntary switches/s", words.Count(n, "program"), processes,
			m.InvoluntaryPerSecond), plain})
}

// alarmLines returns up to most lines about the circular waits. Circles without doubt
// come first.
func (s *screen) alarmLines(most int) []line {
	var all []line
	for _, sure := range []bool{true, false} {
		for _, d := range s.shown.Domains {
			for _, c := range d.Deadlocks {
				if (c.Doubt == "") == sure {
					all = append(all, deadlockLines(d, c)...)
				}
			}
		}
	}
	if len(all) > most {
		left := len(all) - most + 1
		if most == 1 {
			return all[:1]
		}
		all = append(all[:most-1:most-1],
			styledLine(alarm, fmt.Sprintf("  and %s: 4 lists all waits", words.Count(left, "line"))))
	}
	return all
}

func deadlockLines(d domains.Domain, c domains.Deadlock) []line {
	var names []string
	for _, w := range c.Waits {
		names = append(names, processLabel(d, w.PID))
	}
	kind, head := alarm, "DEADLOCK suspected: "+strings.Join(names, ", ")
	if c.Doubt != "" {
		kind, head = doubtful, "cyclic wait; "+c.Doubt+": "+strings.Join(names, ", ")
	}
	all := []line{styledLine(kind, head)}
	for _, w := range c.Waits {
		all = append(all,
			styledLine(kind, "  ", processLabel(d, w.PID), " waits for ", w.What(), ": ", waitTargets(d, w)))
	}
	return all
}

// curveLine returns one line with the named values of a program, such as the training loss,
// indented by indent cells. It returns nil if there are none.
func (s *screen) curveLine(d domains.Domain, indent int) (all []line) {
	for _, q := range curveQueues(d) {
		if all == nil {
			all = []line{{{strings.Repeat(" ", indent), plain}}}
		}
		all[0] = append(all[0], piece{" " + blockLabel(q.Names, q.Block) + " ", faint},
			piece{valueOf(q).text + " ", strong},
			piece{s.trendText(valueKey(d, q), trendWidth) + " ", good})
	}
	return all
}

// programLines returns one line for each domain, with its memory and rates, and no more than
// most lines in all. If withCurves is set, lines with curves are added if all of them fit.
func (s *screen) programLines(width, most int, withCurves bool) (all []line) {
	gauge := 8
	if width >= 100 {
		gauge = 24
	}
	for _, d := range s.shown.Domains {
		id := programOf(d).text
		if d.Error != "" {
			all = append(all, line{{id + " ", strong}, {d.Error, doubtful}})
			continue
		}
		name := ""
		if len(d.Processes) > 0 {
			name = nameOf(d.Processes[0]) + " "
		}
		key := d.Address
		all = append(all, line{{id + " ", strong}, {name, plain}, {d.Gauge(gauge), plain},
			{fmt.Sprintf(" %s of %s ", words.Bytes(d.Committed), words.Bytes(d.Limit)), plain},
			{s.trendText(key+" bytes", trendWidth), good},
			{fmt.Sprintf(" %s  %.0f allocated/s ", words.Count(d.Blocks, "block"), d.AllocsPerSecond), plain},
			{s.trendText(key+" allocs", trendWidth), good},
			{fmt.Sprintf("  %s copied/s ", words.Bytes(int64(d.CopiedPerSecond))), plain},
			{s.trendText(key+" copied", trendWidth), good},
			{fmt.Sprintf("  %d in transit, %s", d.InTransit, words.Count(d.Reaped, "dead worker")), plain}})
		if withCurves {
			all = append(all, s.curveLine(d, len(id))...)
		}
	}
	if len(all) > most && withCurves {
		return s.programLines(width, most, false)
	}
	if len(all) > most {
		left := len(all) - most + 1
		all = all[:max(0, most-1)]
		if most > 0 {
			all = append(all, styledLine(faint, fmt.Sprintf("and %s more", words.Count(left, "program"))))
		}
	}
	return all
}

// tabLine returns the line with the views, the filter and the sort order of the current view. On
// a narrow screen only the current view's name is shown.
func (s *screen) tabLine(width int) line {
	var l line
	for i, v := range views {
		name := fmt.Sprintf("%d %s", i+1, v.name)
		if width < 70 && i != s.view {
			name = fmt.Sprint(i + 1)
		}
		kind := plain
		if i == s.view {
			kind = chosen
		}
		l = append(l, piece{" " + name + " ", kind})
	}
	switch {
	case s.typing:
		return append(l, piece{"  filter: " + s.filter, strong}, piece{" ", chosen})
	case s.filter != "":
		l = append(l, piece{"  filter: " + s.filter, doubtful})
	}
	return append(l, piece{"  by " + s.sortText(), faint})
}

// tableLines renders the column headings and the rows around the selected one in at most room
// lines. It returns nil before the first observation.
func (s *screen) tableLines(width, room int) []line {
	if s.waiting || room <= 0 {
		return nil
	}
	v, p, rows := views[s.view], &s.places[s.view], s.sortedRows()
	if len(rows) == 0 {
		if s.filter != "" {
			return []line{styledLine(plain, fmt.Sprintf("no rows match %q; Esc clears the filter", s.filter))}
		}
		return []line{styledLine(plain, v.none)}
	}
	cs := s.visibleColumns()
	widths := columnWidths(cs, rows, width)
	var all []line
	if room >= 3 {
		all = append(all, styledLine(strong, renderRow(cs, widths, s.ASCII,
			func(i int) string { return s.columnHeading(cs, i) })))
		room--
	}
	left := s.omittedText()
	if left != "" && room > 3 {
		room--
	}
	s.page = max(1, room)
	at := chosenRow(p, rows)
	p.top = max(0, min(p.top, at, len(rows)-room))
	p.top = max(p.top, at-room+1)
	for i := p.top; i < min(len(rows), p.top+room); i++ {
		r := rows[i]
		line := renderRow(cs, widths, s.ASCII, func(j int) string { return r.cells[j].text })
		if i == at {
			line += strings.Repeat(" ", max(0, width-cells.StringWidth(line)))
			all = append(all, styledLine(chosen, line))
		} else {
			all = append(all, styledLine(r.style, line))
		}
	}
	if left != "" && room > 3 {
		all = append(all, styledLine(faint, left))
	}
	return all
}

// columnHeading returns the title of column i, with a mark if it is the sort column.
func (s *screen) columnHeading(cs []column, i int) string {
	p := s.places[s.view]
	if i != p.sort {
		return cs[i].title
	}
	marks := map[bool]string{false: "▼", true: "▲"}
	if s.ASCII {
		marks = map[bool]string{false: "v", true: "^"}
	}
	return cs[i].title + marks[p.reverse]
}

// omittedText describes the objects that the lists of the current view omit. It returns "" if
// there are none.
func (s *screen) omittedText() string {
	var parts []string
	for _, d := range s.shown.Domains {
		switch views[s.view].name {
		case "queues":
			if d.QueuesLeft > 0 {
				parts = append(parts,
					fmt.Sprintf("%s of %s not listed", words.Count(d.QueuesLeft, "queue"), programOf(d).text))
			}
		case "locks":
			if d.LocksLeft > 0 {
				parts = append(parts,
					fmt.Sprintf("%s of %s not listed", words.Count(d.LocksLeft, "lock"), programOf(d).text))
			}
		case "blocks":
			if a := d.Summary.Ages; d.Blocks > 0 {
				parts = append(parts,
					fmt.Sprintf("%s: the largest of %s; %d under 1 s, %d under 1 min, %d older, %d unknown",
						programOf(d).text, words.Count(d.Blocks, "block"), a.Second.Blocks, a.Minute.Blocks,
						a.Older.Blocks,
						a.Unknown.Blocks))
			}
		}
	}
	return strings.Join(parts, "; ")
}

func (s *screen) detailLines(width int) []line {
	rows := views[s.view].rows(s)
	i := slices.IndexFunc(rows, func(r row) bool { return r.key == s.detail })
	if i < 0 {
		return []line{styledLine(plain, "no longer present; Esc goes back")}
	}
	return rows[i].detail(width)
}

// scrollLines returns the lines from the scroll position on. It limits the position, so that the
// last lines fill the screen, which has room lines.
func (s *screen) scrollLines(lines []line, room int) []line {
	s.scroll = max(0, min(s.scroll, len(lines)-room))
	return lines[s.scroll:]
}

func (s *screen) footerLine() line {
	switch {
	case s.typing:
		return styledLine(faint, "Enter keeps the filter  Esc clears it")
	case s.help:
		return styledLine(faint, "any other key goes back  q quits")
	case s.detail != "":
		return styledLine(faint, "Esc back  q quit  arrows scroll  space pause  ? help")
	}
	return styledLine(faint, "q quit  ? help  / filter  s sort  Enter detail  Tab view  space pause  arrows choose")
}

func helpText() (all []line) {
	for _, l := range [][2]string{
		{"up, down", "choose a row; k and j, PgUp, PgDn, Home, End"},
		{"Enter", "details of the chosen row; Esc goes back"},
		{"Tab, 1 to 5", "processes, queues, locks, waits, blocks"},
		{"s", "sort by the next column"},
		{"M, P, R", "sort by memory, by CPUs; reverse the order"},
		{"/", "show only rows with a text; Esc clears it"},
		{"space", "pause or resume"},
		{"Ctrl-L", "redraw"},
		{"Ctrl-Z", "suspend; fg resumes"},
		{"q, Ctrl-C", "quit"},
		{"", ""},
		{"colours", "red: in a suspected deadlock; yellow: not running, in doubt, or its senders wait"},
		{"trends", fmt.Sprintf("the last %d samples, scaled to their maximum", span)},
	} {
		all = append(all, line{{fmt.Sprintf("%-12s", l[0]), strong}, {l[1], plain}})
	}
	return all
}
