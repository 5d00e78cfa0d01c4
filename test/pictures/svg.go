package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A drawing builds an SVG file. [newDrawing] makes it.
type drawing struct{ bytes.Buffer }

// newDrawing returns a drawing of w by h pixels with a background of the color ground, because
// the page may be dark.
func newDrawing(w, h int, ground string) *drawing {
	d := new(drawing)
	fmt.Fprintf(d,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-size="14">`+
			"\n", w, h)
	fmt.Fprintf(d, `<rect width="%d" height="%d" rx="8" fill="%s"/>`+"\n", w, h, ground)
	return d
}

func (d *drawing) end() []byte {
	d.WriteString("</svg>\n")
	return d.Bytes()
}

func (d *drawing) text(x, y int, style, text string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" xml:space="preserve" %s>`, x, y, style)
	xml.EscapeText(d, []byte(text))
	d.WriteString("</text>\n")
}

func (d *drawing) box(x, y, w, h int, fill string) {
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="#456"/>`+"\n", x, y, w, h, fill)
}

// terminal returns an SVG picture of a terminal with the line first, such as a prompt with a
// command, above lines.
func terminal(first string, lines []string) []byte {
	const charWidth, line, edge = 9, 19, 16
	lines = append([]string{first}, lines...)
	d := newDrawing(columns*charWidth+2*edge, len(lines)*line+2*edge, "#1d2630")
	for i, text := range lines {
		d.text(edge, edge+line*i+line*3/4,
			`font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" fill="#dde6ee"`, text)
	}
	return d.end()
}

// drawArena returns an SVG picture of the processes of a domain above their shared memory.
// titles are the titles of the processes by PID.
func drawArena(titles map[int]string, r arena.Report) []byte {
	const width, box, gap, edge = 760, 220, 30, 20
	const sans, centre = `font-family="DejaVu Sans,Helvetica,Arial,sans-serif" fill="#123" text-anchor="middle" `,
		width / 2
	d := newDrawing(width, 270, "#f4f7fa")
	sum := int64(0)
	slices.SortFunc(r.Holders, func(a, b arena.Holder) int { return cmp.Compare(titles[a.PID], titles[b.PID]) })
	for i, h := range r.Holders {
		x := edge + i*(box+gap)
		d.box(x, edge, box, 62, "#ffffff")
		d.text(x+box/2, edge+26, sans+`font-weight="bold"`, titles[h.PID])
		d.text(x+box/2, edge+48, sans, fmt.Sprintf("process %d", h.PID))
		fmt.Fprintf(d, `<path d="M%d %d v52 m-5 -9 l5 9 l5 -9" stroke="#456" fill="none" stroke-width="2"/>`+
			"\n", x+box/2, edge+62)
		d.text(x+box/2+62, edge+92, sans, "holds "+mebibytes(h.Bytes))
		sum += h.Bytes
	}
	d.box(edge, 136, width-2*edge, 76, "#cfe3f2")
	d.text(centre, 164, sans+`font-weight="bold"`,
		fmt.Sprintf("one arena: %d blocks, %s of memory", r.Stats.Blocks, mebibytes(r.Stats.Committed)))
	d.text(centre, 190, sans, "the parameters of the network and the digits, once; each process maps all of it")
	d.text(centre, 242, sans, fmt.Sprintf("Three processes hold %s, and the machine gives %s for it.",
		mebibytes(sum), mebibytes(r.Stats.Committed)))
	return d.end()
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
