package tensor

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// PyTorch's default print options.
const (
	printThreshold = 1000 // elements above which a tensor is summarised
	printEdge      = 3    // indices shown at each end of a summarised dimension
	printWidth     = 80   // of a line
	printPrefix    = "tensor("
)

// String returns the tensor as PyTorch prints it: with four digits, in columns, summarised above
// 1,000 elements.
func (t *Tensor) String() string {
	if t.open() == nil {
		return "tensor(closed)"
	}
	body := "[]"
	if t.Numel() > 0 {
		near, done := t.near()
		body = newPrinter(near).print()
		done()
	}
	runtime.KeepAlive(t)
	return addSuffixes(printPrefix+body, t.suffixes())
}

// suffixes are what does not follow from the elements.
func (t *Tensor) suffixes() (s []string) {
	if dev := t.Device(); dev != nil {
		s = append(s, fmt.Sprintf("device='%v'", dev))
	}
	plain := t.dtype == Float32
	if t.Numel() > 0 {
		plain = plain || t.dtype == Int64 || t.dtype == Bool || t.dtype == Complex64
	} else if len(t.Shape()) != 1 {
		s = append(s, "size="+tuple(t.Shape()))
	}
	if !plain {
		s = append(s, "dtype=torch."+t.dtype.String())
	}
	return s
}

func tuple(shape []int) string {
	text := strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
	text = text[1 : len(text)-1]
	if len(shape) == 1 {
		text += ","
	}
	return "(" + text + ")"
}

// addSuffixes puts each suffix on the last line where it fits, or on a line of its own.
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

// A printer writes elements in columns. Complex numbers have a format for each of their parts.
type printer struct {
	t         *Tensor // of a dtype that prints directly
	mem       []byte
	summarise bool
	formats   []format
}

func newPrinter(t *Tensor) *printer {
	if t.dtype.isFloat() && t.dtype.Size() < Float32.Size() {
		t = t.To(Float32)
	}
	p := &printer{t: t, mem: t.bytes(), summarise: t.Numel() > printThreshold}
	var shown []int
	p.visit(0, t.offset, func(at int) { shown = append(shown, at) })
	if !t.dtype.isFloat() && !t.dtype.isComplex() {
		return p.columns(shown)
	}
	parts := 1
	if t.dtype.isComplex() {
		parts = 2
	}
	for i := range parts {
		values := make([]float64, len(shown))
		for k, at := range shown {
			values[k] = p.parts(at)[i]
		}
		p.formats = append(p.formats, floatFormat(values))
	}
	return p
}

// columns sets the format of what is no float.
func (p *printer) columns(shown []int) *printer {
	f := format{width: 1}
	for _, at := range shown {
		f.width = max(f.width, len(p.whole(at)))
	}
	p.formats = []format{f}
	return p
}

// visit calls f with the places of all elements that are shown.
func (p *printer) visit(dim, at int, f func(at int)) {
	if dim == len(p.t.Shape()) {
		f(at)
		return
	}
	for _, i := range p.indices(dim) {
		if i >= 0 {
			p.visit(dim+1, at+i*p.t.Strides()[dim], f)
		}
	}
}

// indices returns the indices of a dimension that are shown, and -1 where some are left out.
func (p *printer) indices(dim int) []int {
	n := p.t.Shape()[dim]
	var list []int
	for i := range n {
		switch {
		case !p.summarise || n <= 2*printEdge || i < printEdge || i >= n-printEdge:
			list = append(list, i)
		case i == printEdge:
			list = append(list, -1)
		}
	}
	return list
}

func (p *printer) print() string { return p.block(0, p.t.offset, len(printPrefix)) }

// block writes the dimensions from dim on.
func (p *printer) block(dim, at, indent int) string {
	switch len(p.t.Shape()) - dim {
	case 0:
		return p.element(at)
	case 1:
		return p.line(at, indent)
	}
	var parts []string
	for _, i := range p.indices(dim) {
		if i < 0 {
			parts = append(parts, "...")
		} else {
			parts = append(parts, p.block(dim+1, at+i*p.t.Strides()[dim], indent+1))
		}
	}
	gap := "," + strings.Repeat("\n", len(p.t.Shape())-dim-1) + strings.Repeat(" ", indent+1)
	return "[" + strings.Join(parts, gap) + "]"
}

// line writes the last dimension, on as many lines as it needs.
func (p *printer) line(at, indent int) string {
	last := len(p.t.Shape()) - 1
	var parts []string
	for _, i := range p.indices(last) {
		if i < 0 {
			parts = append(parts, " ...")
		} else {
			parts = append(parts, p.element(at+i*p.t.Strides()[last]))
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

// element writes one element, as wide as its column.
func (p *printer) element(at int) string {
	switch {
	case p.t.dtype.isComplex():
		z := p.parts(at)
		imaginary := strings.TrimLeft(p.formats[1].text(z[1])+"j", " ")
		if imaginary[0] != '-' {
			imaginary = "+" + imaginary
		}
		return p.formats[0].text(z[0]) + imaginary
	case p.t.dtype.isFloat():
		return p.formats[0].text(p.parts(at)[0])
	}
	return p.formats[0].pad(p.whole(at))
}

// parts returns a float, or both parts of a complex number.
func (p *printer) parts(at int) [2]float64 {
	var z [1]complex128
	caster(Complex128, p.t.dtype)(raw(z[:]), 1, p.mem[at*p.t.dtype.Size():], 1, 1)
	return [2]float64{real(z[0]), imag(z[0])}
}

// whole returns the text of an integer or a boolean.
func (p *printer) whole(at int) string {
	b := p.mem[at*p.t.dtype.Size():]
	switch p.t.dtype {
	case Bool:
		return [2]string{"False", "True"}[b[0]]
	case Uint64:
		return fmt.Sprint(one[uint64](Uint64, Uint64, b))
	}
	return fmt.Sprint(one[int64](Int64, p.t.dtype, b))
}
