package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A column of a table. Where there is no room for all, those with the smallest worth go first.
type column struct {
	title string
	left  bool // where its texts begin
	worth int  // 0: it never goes
	flex  bool // it is cut, so that the others have room
}

// A cell has a text, and a number if it is one to sort by.
type cell struct {
	text string
	n    float64
}

// A row is a line of a table.
type row struct {
	key    string // what it is, from one look to the next
	cells  []cell
	style  style
	detail func(width int) []line
}

// has reports whether a person who looks for a text finds it in the row.
func (r row) has(text string) bool {
	text = strings.ToLower(text)
	return text == "" || slices.ContainsFunc(r.cells, func(c cell) bool {
		return strings.Contains(strings.ToLower(c.text), text)
	})
}

// order sorts by a column: numbers from the largest, texts from the first letter, unless they are
// turned round. Rows that are alike stay as they were.
func order(rows []row, by int, reverse bool) {
	slices.SortStableFunc(rows, func(a, b row) int {
		x, y := a.cells[by], b.cells[by]
		way := cmp.Or(cmp.Compare(y.n, x.n), natural(x.text, y.text))
		if reverse {
			return -way
		}
		return way
	})
}

// natural compares texts, with a number at the end as a number.
func natural(a, b string) int {
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
	narrow  = 10 // what a column that is cut keeps at least
	nothing = -1
)

// layout returns how wide each column is; nothing, if it has no room.
func layout(cs []column, rows []row, width int) []int {
	widths := make([]int, len(cs))
	for i, c := range cs {
		widths[i] = cells.StringWidth(c.title) + 1 // for the mark of the order
		for _, r := range rows {
			widths[i] = max(widths[i], cells.StringWidth(clean(r.cells[i].text, false)))
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

// across writes one line of a table.
func across(cs []column, widths []int, ascii bool, textOf func(i int) string) string {
	var parts []string
	for i, w := range widths {
		if w != nothing {
			parts = append(parts, fit(textOf(i), w, cs[i].left, ascii))
		}
	}
	return strings.Join(parts, strings.Repeat(" ", gap))
}
