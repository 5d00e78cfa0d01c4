package codec

// A Span is the range of bytes that a message uses in a block, from offset Begin up to, but not
// including, End. It is empty if End is 0.
type Span struct{ Begin, End uint64 }

// itemSizes are the bytes of an element, by dtype.
var itemSizes = [...]uint64{1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1}

const (
	spanDims = 64
	spanMax  = 1 << 48 // no number in the form of a tensor is larger
)

// Spans returns, by the index of each block of m, the range of the block that the values of m
// use, and whether it can be copied. With copies of these bytes the message can be sent to a
// process that cannot access its blocks. ok is false for a block that cannot be copied, such as
// a queue or a lock.
//
// These forms name a block and the range they use:
//
//	[0, dtype, block, offset, sizes, strides or nil]    a tensor
//	[0, block, size]                                    a Memory
//
// It returns [ErrFormat] if the body is malformed.
func Spans(m Message) (spans []Span, ok []bool, err error) {
	spans, ok = make([]Span, len(m.Blocks)), make([]bool, len(m.Blocks))
	if len(m.Blocks) == 0 {
		return spans, ok, nil
	}
	for i := range ok {
		ok[i] = true
	}
	named := make([]bool, len(m.Blocks))
	d := Decoder{body: m.Body, table: m.Blocks}
	for d.off < len(d.body) {
		if i, s, found := d.readSpan(); found {
			spans[i], named[i] = spans[i].Union(s), true
			continue
		}
		at := d.off
		if i, err := d.readBlockPlace(); err == nil {
			ok[i] = false
			continue
		}
		d.off = at
		if _, err := d.skipOne(); err != nil { // of an array or a map it skips the beginning
			return nil, nil, err
		}
	}
	for i := range ok {
		ok[i] = ok[i] && named[i]
	}
	return spans, ok, nil
}

// Union returns the smallest span that contains s and t.
func (s Span) Union(t Span) Span {
	switch {
	case s.End == 0:
		return t
	case t.End == 0:
		return s
	}
	return Span{min(s.Begin, t.Begin), max(s.End, t.End)}
}

// readBlockPlace reads a reference to a block and returns its index in the table, without taking
// the block. It returns [ErrFormat] if another value comes next.
func (d *Decoder) readBlockPlace() (int, error) {
	at := d.off
	b, err := d.readExt(ExtBlock, "a block")
	if err != nil {
		return 0, err
	}
	i := 0
	for _, x := range b {
		i = i<<8 | int(x)
	}
	if len(b) > 2 || i >= len(d.table) {
		return 0, d.formatError(at, "block index %d, message has %d blocks", i, len(d.table))
	}
	return i, nil
}

// readSpan reads one of the forms that Spans documents. It returns the index i of the block in the
// message's table, and the span s of the bytes in the block. If the next value has another form, ok
// is false and readSpan consumes nothing.
func (d *Decoder) readSpan() (i int, s Span, ok bool) {
	at := d.off
	n, err := d.ArrayLen()
	if err == nil && (n == 3 || n == 6) {
		if tag, e := d.Uint(); e == nil && tag == 0 {
			if n == 3 {
				i, s, err = d.readMemorySpan()
			} else {
				i, s, err = d.readTensorSpan()
			}
			if err == nil {
				return i, s, true
			}
		}
	}
	d.off = at
	return 0, Span{}, false
}

func (d *Decoder) readMemorySpan() (i int, s Span, err error) {
	if i, err = d.readBlockPlace(); err != nil {
		return 0, s, err
	}
	s.End, err = d.readBounded()
	return i, s, err
}

func (d *Decoder) readTensorSpan() (i int, s Span, err error) {
	dtype, err := d.readBounded()
	if err != nil {
		return 0, s, err
	}
	if dtype >= uint64(len(itemSizes)) {
		return 0, s, d.formatError(d.off, "unknown dtype %d", dtype)
	}
	if i, err = d.readBlockPlace(); err != nil {
		return 0, s, err
	}
	offset, err := d.readBounded()
	if err != nil {
		return 0, s, err
	}
	sizes, err := d.readDims()
	if err != nil {
		return 0, s, err
	}
	var strides []uint64
	if contiguous := d.IsNil(); !contiguous {
		if strides, err = d.readDims(); err == nil && len(strides) != len(sizes) {
			err = d.formatError(d.off, "got %d sizes and %d strides, want equal numbers", len(sizes), len(strides))
		}
		if err != nil {
			return 0, s, err
		}
	}
	last, step := offset, uint64(1)
	for k := len(sizes) - 1; k >= 0; k-- {
		n := sizes[k]
		if n == 0 {
			return i, Span{}, nil
		}
		if strides != nil {
			step = strides[k]
		}
		if n > 1 && (step >= spanMax || step > (spanMax-last)/(n-1)) {
			return 0, s, d.formatError(d.off, "tensor extends beyond the address space")
		}
		last += (n - 1) * step
		if strides == nil {
			step *= n // below spanMax: the product is one more than the last element's place
		}
	}
	size := itemSizes[dtype]
	return i, Span{offset * size, (last + 1) * size}, nil
}

// readDims reads an array of at most [spanDims] sizes or strides, each less than [spanMax].
func (d *Decoder) readDims() ([]uint64, error) {
	n, err := d.ArrayLen()
	if err == nil && n > spanDims {
		err = d.formatError(d.off, "%d dimensions", n)
	}
	if err != nil {
		return nil, err
	}
	list := make([]uint64, n)
	for k := range list {
		if list[k], err = d.readBounded(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (d *Decoder) readBounded() (uint64, error) {
	at := d.off
	n, err := d.Uint()
	if err == nil && n >= spanMax {
		err = d.formatError(at, "number %d is out of range", n)
	}
	return n, err
}
