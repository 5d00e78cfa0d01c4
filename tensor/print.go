package tensor

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// PyTorch's default print options.
const (
	printThreshold = 1000    // number of elements above which a tensor is summarized
	printEdge      = 3       // number of indices shown at each end of a summarized dimension
	printWidth     = 80      // columns of a line
	printMost      = 1 << 20 // maximum number of elements of a summary; PyTorch has no such limit
	printPrefix    = "tensor("
)

// String returns the tensor as PyTorch prints it: with four digits, in columns, summarized above
// 1,000 elements. It reads only the elements that it shows. It returns "tensor(closed)" for a
// closed tensor.
func (t *Tensor) String() string {
	if t.open() == nil {
		return "tensor(closed)"
	}
	body := "[]"
	if t.Numel() > 0 {
		body = newPrinter(t).print()
	}
	return addSuffixes(printPrefix+body, t.printSuffixes())
}

// printSuffixes returns the properties that cannot be inferred from the printed elements.
func (t *Tensor) printSuffixes() (s []string) {
	if dev := t.Device(); dev != nil {
		s = append(s, fmt.Sprintf("device='%v'", dev))
	}
	plain := t.dtype == Float32
	if t.Numel() > 0 {
		plain = plain || t.dtype == Int64 || t.dtype == Bool || t.dtype == Complex64
	} else if len(t.Shape()) != 1 {
		s = append(s, "size="+formatTuple(t.Shape()))
	}
	if !plain {
		s = append(s, "dtype=torch."+t.dtype.String())
	}
	return s
}

func formatTuple(shape []int) string {
	text := strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
	text = text[1 : len(text)-1]
	if len(shape) == 1 {
		text += ","
	}
	return "(" + text + ")"
}

// addSuffixes returns text with each suffix appended to the last line if it fits, or on a new
// line, and a closing parenthesis.
func addSuffixes(text string, suffixes []string) string {
	width := len(text) - strings.LastIndexByte(text, '\n') + 1
	for _, s := range suffixes {
		if width+len(s)+2 > printWidth {
			text += ",\n" + strings.Repeat(" ", len(printPrefix)) + s
			width = len(printPrefix) + len(s)
			continue
		}
		text += ", " + s
		width += len(s) + 2
	}
	return text + ")"
}

// A printer prints elements in columns. Complex numbers have one format for each part.
type printer struct {
	t       *Tensor // contiguous copy of the shown elements, on the host, in a printable dtype
	heads   []int   // number of indices before the omitted ones, by dimension; 0 if none is omitted
	mem     []byte
	formats []format
}

func newPrinter(t *Tensor) *printer {
	shape, heads := t.summaryShape()
	shown := Empty(t.dtype, shape...)
	shown.copyShown(t, heads, 0)
	runtime.KeepAlive(t)
	if t.dtype.isFloat() && t.dtype.Size() < Float32.Size() {
		shown = shown.To(Float32)
	}
	p := &printer{t: shown, heads: heads, mem: shown.contiguousBytes()}
	if !t.dtype.isFloat() && !t.dtype.isComplex() {
		return p.setColumnFormat()
	}
	parts := 1
	if t.dtype.isComplex() {
		parts = 2
	}
	for i := range parts {
		values := make([]float64, shown.Numel())
		for at := range values {
			values[at] = p.componentsAt(at)[i]
		}
		p.formats = append(p.formats, floatFormat(values))
	}
	return p
}

// summaryShape returns the number of printed indices of each dimension, and how many of them
// precede the omitted ones, or 0 if none is omitted. If a summary would still be too long, because
// t has many dimensions, only the first index of the outer dimensions is printed.
func (t *Tensor) summaryShape() (shape, heads []int) {
	shape, heads = slices.Clone(t.Shape()), make([]int, len(t.Shape()))
	if t.Numel() <= printThreshold {
		return shape, heads
	}
	for d, n := range shape {
		if n > 2*printEdge {
			shape[d], heads[d] = 2*printEdge, printEdge
		}
	}
	for d := 0; product(shape) > printMost; d++ {
		if shape[d] > 1 {
			shape[d], heads[d] = 1, 1
		}
	}
	return shape, heads
}

// copyShown copies the printed elements of src to t, for the dimensions from dim on. heads is the
// result of summaryShape.
func (t *Tensor) copyShown(src *Tensor, heads []int, dim int) {
	for dim < len(heads) && heads[dim] == 0 {
		dim++
	}
	if dim == len(heads) {
		t.CopyFrom(src)
		return
	}
	head, tail := heads[dim], t.Shape()[dim]-heads[dim]
	t.copyShownPart(src, heads, dim, 0, 0, head)
	if tail > 0 {
		t.copyShownPart(src, heads, dim, head, src.Shape()[dim]-tail, tail)
	}
}

// copyShownPart is copyShown for n indices of dimension dim: from index from on in src, and from
// index to on in t.
func (t *Tensor) copyShownPart(src *Tensor, heads []int, dim, to, from, n int) {
	part, shown := t.Narrow(dim, to, n), src.Narrow(dim, from, n)
	defer part.release()
	defer shown.release()
	part.copyShown(shown, heads, dim+1)
}

// setColumnFormat sets the format of integers and booleans, and returns p.
func (p *printer) setColumnFormat() *printer {
	f := format{width: 1}
	for at := range p.t.Numel() {
		f.width = max(f.width, len(p.wholeText(at)))
	}
	p.formats = []format{f}
	return p
}

// shownIndices returns the shown indices of a dimension, and -1 in place of omitted ones.
func (p *printer) shownIndices(dim int) []int {
	var list []int
	for i := range p.t.Shape()[dim] {
		list = append(list, i)
		if i+1 == p.heads[dim] {
			list = append(list, -1)
		}
	}
	return list
}

func (p *printer) print() string { return p.printBlock(0, 0, len(printPrefix)) }

// printBlock returns the text of the dimensions from dim on. Their first element is at position
// at, and the text begins in column indent.
func (p *printer) printBlock(dim, at, indent int) string {
	switch len(p.t.Shape()) - dim {
	case 0:
		return p.printElement(at)
	case 1:
		return p.printLine(at, indent)
	}
	var parts []string
	for _, i := range p.shownIndices(dim) {
		if i < 0 {
			parts = append(parts, "...")
		} else {
			parts = append(parts, p.printBlock(dim+1, at+i*p.t.Strides()[dim], indent+1))
		}
	}
	gap := "," + strings.Repeat("\n", len(p.t.Shape())-dim-1) + strings.Repeat(" ", indent+1)
	return "[" + strings.Join(parts, gap) + "]"
}

// printLine returns the text of the last dimension, on as many lines as necessary. Its first
// element is at position at, and the text begins in column indent.
func (p *printer) printLine(at, indent int) string {
	last := len(p.t.Shape()) - 1
	var parts []string
	for _, i := range p.shownIndices(last) {
		if i < 0 {
			parts = append(parts, " ...")
		} else {
			parts = append(parts, p.printElement(at+i*p.t.Strides()[last]))
		}
	}
	width := p.formats[0].width + 2
	if len(p.formats) == 2 {
		width += p.formats[1].width + 1
	}
	var lines []string
	for some := range slices.Chunk(parts, max(1, (printWidth-indent)/width)) {
		lines = append(lines, strings.Join(some, ", "))
	}
	return "[" + strings.Join(lines, ",\n"+strings.Repeat(" ", indent+1)) + "]"
}

// printElement returns the text of the element at position at, in the width of its column.
func (p *printer) printElement(at int) string {
	switch {
	case p.t.dtype.isComplex():
		z := p.componentsAt(at)
		imaginary := strings.TrimLeft(p.formats[1].formatNumber(z[1])+"j", " ")
		if imaginary[0] != '-' {
			imaginary = "+" + imaginary
		}
		return p.formats[0].formatNumber(z[0]) + imaginary
	case p.t.dtype.isFloat():
		return p.formats[0].formatNumber(p.componentsAt(at)[0])
	}
	return p.formats[0].pad(p.wholeText(at))
}

// componentsAt returns a float, or the real and imaginary parts of a complex number.
func (p *printer) componentsAt(at int) [2]float64 {
	var z [1]complex128
	castFuncFor(Complex128, p.t.dtype)(rawBytes(z[:]), 1, p.mem[at*p.t.dtype.Size():], 1, 1)
	return [2]float64{real(z[0]), imag(z[0])}
}

// wholeText returns an integer or a boolean as text.
func (p *printer) wholeText(at int) string {
	b := p.mem[at*p.t.dtype.Size():]
	switch p.t.dtype {
	case Bool:
		return [2]string{"False", "True"}[b[0]]
	case Uint64:
		return fmt.Sprint(castFirst[uint64](Uint64, Uint64, b))
	}
	return fmt.Sprint(castFirst[int64](Int64, p.t.dtype, b))
}
