package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A column describes a column of a table. If the table is too wide, the columns with the smallest
// worth are hidden first.
type column struct {
	title string
	left  bool // left-aligned
	worth int  // 0 means always shown
	flex  bool // may be truncated to make room
}

// A cell is a text with its sort key. The key is 0 for texts.
type cell struct {
	text string
	n    float64
}

// A row is a row of a table. A view makes its rows anew for each frame. detail returns the lines
// of the detail view.
type row struct {
	key    string // identifies it across observations
	cells  []cell
	style  style
	detail func(width int) []line
}

// containsText reports whether one of the row's cells contains text, ignoring case.
func (r row) containsText(text string) bool {
	text = strings.ToLower(text)
	return text == "" || slices.ContainsFunc(r.cells, func(c cell) bool {
		return strings.Contains(strings.ToLower(c.text), text)
	})
}

// sortRows sorts rows by the column with the index by: numbers in descending order, texts in
// ascending order, or the opposite if reverse is set. The sort is stable.
func sortRows(rows []row, by int, reverse bool) {
	slices.SortStableFunc(rows, func(a, b row) int {
		x, y := a.cells[by], b.cells[by]
		way := cmp.Or(cmp.Compare(y.n, x.n), compareNatural(x.text, y.text))
		if reverse {
			return -way
		}
		return way
	})
}

// compareNatural compares texts, as [strings.Compare] does, but treats a trailing number as a
// number.
func compareNatural(a, b string) int {
	cut := func(s string) (string, int) {
		word := strings.TrimRight(s, "0123456789")
		n, _ := strconv.Atoi(s[len(word):])
		return word, n
	}
	x, m := cut(a)
	y, n := cut(b)
	return cmp.Or(strings.Compare(x, y), cmp.Compare(m, n))
}

const (
	gap     = 2  // between columns
	narrow  = 10 // minimum width of a truncated column
	nothing = -1
)

// columnWidths returns the width of each column, in cells, for a table of the given width. A
// hidden column has the width [nothing]. The columns that are always shown may exceed the width
// of the table.
func columnWidths(cs []column, rows []row, width int) []int {
	widths := make([]int, len(cs))
	for i, c := range cs {
		widths[i] = cells.StringWidth(c.title) + 1 // for the sort mark
		for _, r := range rows {
			widths[i] = max(widths[i], cells.StringWidth(replaceUnprintable(r.cells[i].text, false)))
		}
	}
	total := func(least bool) int {
		sum := -gap
		for i, w := range widths {
			switch {
			case w == nothing:
			case least && cs[i].flex:
				sum += min(w, narrow) + gap
			default:
				sum += w + gap
			}
		}
		return sum
	}
	for total(true) > width {
		least := nothing
		for i, c := range cs {
			if widths[i] != nothing && c.worth > 0 && (least == nothing || c.worth < cs[least].worth) {
				least = i
			}
		}
		if least == nothing {
			break
		}
		widths[least] = nothing
	}
	for i, c := range cs {
		if over := total(false) - width; c.flex && widths[i] != nothing && over > 0 {
			widths[i] = max(min(widths[i], narrow), widths[i]-over)
		}
	}
	return widths
}

// renderRow renders one row of a table. widths is the result of [columnWidths], and textOf
// returns the text of column i.
func renderRow(cs []column, widths []int, ascii bool, textOf func(i int) string) string {
	var parts []string
	for i, w := range widths {
		if w != nothing {
			parts = append(parts, fitWidth(textOf(i), w, cs[i].left, ascii))
		}
	}
	return strings.Join(parts, strings.Repeat(" ", gap))
}
