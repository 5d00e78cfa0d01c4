package tensor

import "slices"

// Narrow returns a view of the indices start to start+n-1 along dim. A negative start counts from
// the end. Narrow panics if the indices are out of range.
func (t *Tensor) Narrow(dim, start, n int) *Tensor {
	dim = t.resolveDim(dim)
	size := t.Shape()[dim]
	if start < 0 && start >= -size {
		start += size
	}
	if start < 0 || n < 0 || start+n > size {
		misuse(ErrIndex, "Narrow: %d indices from %d are out of range for size %d", n, start, size)
	}
	return t.Slice(dim, start, start+n, 1)
}

// Slice returns a view of every step-th index along dim, from from up to but excluding to. As in
// Python, negative bounds count from the end, and out-of-range bounds are clipped. step must be
// positive.
func (t *Tensor) Slice(dim, from, to, step int) *Tensor {
	dim = t.resolveDim(dim)
	if step < 1 {
		misuse(ErrArgument, "Slice: got step %d, want at least 1", step)
	}
	size := t.Shape()[dim]
	from, to = clampIndex(from, size), clampIndex(to, size)
	var room [2][2 * fewDims]int
	shape, strides := append(room[0][:0], t.Shape()...), append(room[1][:0], t.Strides()...)
	shape[dim] = max(0, (to-from+step-1)/step)
	strides[dim] *= step
	return t.view(shape, strides, t.offset+from*t.Strides()[dim])
}

func clampIndex(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

// Select returns a view of index i along dim, without this dimension. A negative i counts from
// the end. Select panics if i is out of range.
func (t *Tensor) Select(dim, i int) *Tensor {
	dim = t.resolveDim(dim)
	i = wrapIndex(i, t.Shape()[dim], "index")
	var room [2][2 * fewDims]int
	return t.view(removeAt(room[0][:0], t.Shape(), dim), removeAt(room[1][:0], t.Strides(), dim),
		t.offset+i*t.Strides()[dim])
}

// removeAt returns s without s[i]. It uses room if the result fits.
func removeAt(room, s []int, i int) []int { return append(append(room, s[:i]...), s[i+1:]...) }

// Split returns consecutive views of size indices each along dim; the last view may be smaller. A
// negative dim counts from the end. Split panics unless size is positive; but if dim has size 0,
// size may be 0, and Split returns one view. The caller must close each view of a shared tensor.
func (t *Tensor) Split(size, dim int) []*Tensor {
	dim = t.resolveDim(dim)
	n := t.Shape()[dim]
	if size < 0 || size == 0 && n > 0 {
		misuse(ErrArgument, "Split %d indices: got part size %d, want at least 1", n, size)
	}
	if n == 0 {
		return []*Tensor{t.Narrow(dim, 0, 0)}
	}
	parts := make([]*Tensor, 0, (n+size-1)/size)
	for at := 0; at < n; at += size {
		parts = append(parts, t.Narrow(dim, at, min(size, n-at)))
	}
	return parts
}

// Chunk returns at most n views that divide dim into equal parts; the last may be smaller. n must
// be positive. If dim has size 0, Chunk returns n empty views. The caller must close each view of
// a shared tensor.
func (t *Tensor) Chunk(n, dim int) []*Tensor {
	if n < 1 {
		misuse(ErrArgument, "Chunk: got %d parts, want at least 1", n)
	}
	if dim = t.resolveDim(dim); t.Shape()[dim] == 0 { // n empty views, as in PyTorch
		parts := make([]*Tensor, n)
		for i := range parts {
			parts[i] = t.Narrow(dim, 0, 0)
		}
		return parts
	}
	return t.Split(max(1, (t.Dim(dim)+n-1)/n), dim)
}

// Permute returns a view with reordered dimensions: dimension i of the view is dimension dims[i] of
// t. Each dimension must occur once.
func (t *Tensor) Permute(dims ...int) *Tensor {
	if len(dims) != len(t.Shape()) {
		misuse(ErrShape, "Permute: got dimensions %v, want a permutation of %d dimensions",
			slices.Clone(dims), len(t.Shape()))
	}
	var room [2][2 * fewDims]int
	shape, strides, seen := room[0][:0], room[1][:0], axes(0)
	for _, d := range dims {
		d = t.resolveDim(d)
		if seen.has(d) {
			misuse(ErrIndex, "Permute: %v repeats a dimension", slices.Clone(dims))
		}
		seen |= 1 << d
		shape, strides = append(shape, t.Shape()[d]), append(strides, t.Strides()[d])
	}
	return t.view(shape, strides, t.offset)
}

// Transpose returns a view with dimensions a and b exchanged.
func (t *Tensor) Transpose(a, b int) *Tensor {
	if len(t.Shape()) == 0 { // a scalar has a dimension 0 here as well
		wrapIndex(a, 1, "dimension")
		wrapIndex(b, 1, "dimension")
		return t.view(t.Shape(), t.Strides(), t.offset)
	}
	a, b = t.resolveDim(a), t.resolveDim(b)
	var room [2][2 * fewDims]int
	shape, strides := append(room[0][:0], t.Shape()...), append(room[1][:0], t.Strides()...)
	shape[a], shape[b] = shape[b], shape[a]
	strides[a], strides[b] = strides[b], strides[a]
	return t.view(shape, strides, t.offset)
}

// T returns a view of the transposed matrix. It returns a view with the same shape if t has at most
// one dimension, and panics if t has more than two.
func (t *Tensor) T() *Tensor {
	if len(t.Shape()) < 2 {
		return t.view(t.Shape(), t.Strides(), t.offset)
	}
	if len(t.Shape()) > 2 {
		misuse(ErrShape, "T: got a tensor of %d dimensions, want at most 2: use Transpose or Permute",
			len(t.Shape()))
	}
	return t.Transpose(0, 1)
}

// View returns a view with another shape and the same number of elements. One size may be -1; it is
// inferred from the others. View panics if the strides do not allow a view; see [Tensor.Reshape],
// which copies in this case.
func (t *Tensor) View(shape ...int) *Tensor {
	v := new(Tensor)
	if !t.makeViewAs(v, shape) {
		misuse(ErrShape, "View: shape %v with strides %v cannot be viewed as %v: use Reshape",
			t.Shape(), t.Strides(), slices.Clone(shape))
	}
	return v
}

// Reshape returns the elements in another shape: a view, or a copy if the strides do not allow a
// view. One size may be -1; it is inferred from the others.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	v := new(Tensor)
	if t.makeViewAs(v, shape) {
		return v
	}
	c := t.Clone()
	var room [fewDims]int
	return newContiguous(c.store(), t.dtype, t.inferShape(room[:0], shape))
}

// makeViewAs makes v a view of t with another shape. v must be closed and not visible to other
// code. makeViewAs returns false if the strides do not allow a view, and panics with ErrShape if
// the shape does not match the number of elements.
func (t *Tensor) makeViewAs(v *Tensor, shape []int) bool {
	var sizes, steps [fewDims]int
	shape = t.inferShape(sizes[:0], shape)
	strides, ok := t.restride(steps[:0], shape)
	if !ok {
		return false
	}
	t.makeView(v, shape, strides, t.offset)
	return true
}

// makeView makes v a view of t with its own reference to the storage. strides and offset are in
// elements. v must be closed and not visible to other code.
func (t *Tensor) makeView(v *Tensor, shape, strides []int, offset int) {
	s := t.store()
	if !s.retain(t.generation) {
		misuse(ErrClosed, "use of a closed tensor")
	}
	*v = Tensor{dtype: t.dtype, offset: offset}
	v.setLayout(shape, strides)
	v.setStorage(s)
}

// inferShape returns a copy of shape with -1 replaced by the inferred size. It panics with
// ErrShape if the shape does not match the number of elements of t. It uses room if the result
// fits.
func (t *Tensor) inferShape(room, shape []int) []int {
	own, n := append(room, shape...), t.Numel()
	if i := slices.Index(own, -1); i >= 0 {
		own[i] = 1
		rest := product(own)
		if rest == 0 || slices.Contains(own, -1) {
			misuse(ErrShape, "shape %v: cannot infer the size of -1", slices.Clone(shape))
		}
		own[i] = n / rest
	}
	checkShape(t.dtype, own)
	if product(own) != n {
		misuse(ErrShape, "shape %v does not match %d elements", slices.Clone(shape), n)
	}
	return own
}

// restride returns the strides of a view of t in another shape with the same number of elements. ok
// is false if there is no such view: each run of dimensions that can be merged into one must be
// divided among new dimensions of its own. The strides are in room if they fit.
func (t *Tensor) restride(room, shape []int) (strides []int, ok bool) {
	strides = slices.Grow(room, len(shape))[:len(shape)]
	if t.Numel() == 0 || len(t.Shape()) == 0 {
		rowMajorInto(strides, shape)
		return strides, true
	}
	next := len(shape) - 1
	run := 1
	step := t.Strides()[len(t.Strides())-1]
	for i, n := range slices.Backward(t.Shape()) {
		run *= n
		if i > 0 && (t.Shape()[i-1] == 1 || t.Strides()[i-1] == run*step) {
			continue
		}
		done := 1
		for ; next >= 0 && (done < run || shape[next] == 1); next-- {
			strides[next] = done * step
			done *= shape[next]
		}
		if done != run {
			return nil, false
		}
		if i > 0 {
			run, step = 1, t.Strides()[i-1]
		}
	}
	return strides, true
}

// Flatten merges the dimensions from to to, inclusive, into one. It returns a view, or a view of a
// copy if the strides do not allow one.
func (t *Tensor) Flatten(from, to int) *Tensor {
	if len(t.Shape()) == 0 {
		wrapIndex(from, 1, "dimension")
		wrapIndex(to, 1, "dimension")
		return t.Reshape(1)
	}
	from, to = t.resolveDim(from), t.resolveDim(to)
	if from > to {
		misuse(ErrIndex, "Flatten: first dimension %d is after last dimension %d", from, to)
	}
	shape := slices.Replace(slices.Clone(t.Shape()), from, to+1, product(t.Shape()[from:to+1]))
	return t.Reshape(shape...)
}

// Squeeze returns a view without the given dimensions that have size 1, or without all dimensions
// of size 1 if dims is empty. A scalar has a dimension 0 here. Squeeze panics if a dimension is
// listed twice.
func (t *Tensor) Squeeze(dims ...int) *Tensor {
	var room [2][2 * fewDims]int
	shape, strides, named := room[0][:0], room[1][:0], axes(0)
	for _, d := range dims {
		if d = wrapIndex(d, max(len(t.Shape()), 1), "dimension"); named.has(d) {
			misuse(ErrIndex, "Squeeze: dimension %d is repeated", d)
		}
		named |= 1 << d
	}
	for i, n := range t.Shape() {
		if n != 1 || len(dims) > 0 && !named.has(i) {
			shape, strides = append(shape, n), append(strides, t.Strides()[i])
		}
	}
	return t.view(shape, strides, t.offset)
}

// Unsqueeze returns a view with a new dimension dim of size 1.
func (t *Tensor) Unsqueeze(dim int) *Tensor {
	dim = wrapIndex(dim, len(t.Shape())+1, "dimension")
	step := 1
	if dim < len(t.Shape()) {
		step = t.Shape()[dim] * t.Strides()[dim]
	}
	var room [2][2 * fewDims]int
	return t.view(slices.Insert(append(room[0][:0], t.Shape()...), dim, 1),
		slices.Insert(append(room[1][:0], t.Strides()...), dim, step), t.offset)
}

// Expand returns a view of t broadcast to a shape. A size of -1 keeps the size of t. All copies of
// an element share its memory, so the view must not be written to: methods that do panic.
func (t *Tensor) Expand(shape ...int) *Tensor {
	var room [2][2 * fewDims]int
	own := append(room[0][:0], shape...)
	extra := len(own) - len(t.Shape())
	for i, n := range own {
		if n == -1 && i >= extra && extra >= 0 {
			own[i] = t.Shape()[i-extra]
		}
	}
	checkShape(t.dtype, own)
	return t.view(own, t.appendBroadcastStrides(room[1][:0], own), t.offset)
}

// AsStrided returns a view of t's storage with the given shape, strides and offset, in elements. It
// panics if the view exceeds the storage.
func (t *Tensor) AsStrided(shape, strides []int, offset int) *Tensor {
	checkShape(t.dtype, shape)
	if len(strides) != len(shape) || offset < 0 || slices.ContainsFunc(strides, func(s int) bool { return s < 0 }) {
		misuse(ErrShape, "AsStrided: got shape %v, strides %v, offset %d: want as many strides as dimensions, and "+
			"strides and offset of at least 0",
			shape, strides, offset)
	}
	v := t.borrowView(shape, strides, offset)
	if err := v.checkLayout(t.store().mem.Load().size()); err != nil {
		misuse(ErrShape, "AsStrided: %v", err)
	}
	return t.view(v.Shape(), v.Strides(), v.offset)
}
