package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// copyIfShared returns t, or a copy if t is a view of shared memory on the host: a view would keep
// the block in use while other processes wait for its release. It closes t if it copies.
func copyIfShared(t *tensor.Tensor) *tensor.Tensor {
	if !t.IsShared() || t.Device() != nil {
		return t
	}
	c := t.Clone()
	t.Close()
	return c
}

// Reshape returns x with another shape and the same number of elements. One size may be -1; it is
// inferred from the others.
func Reshape(x *Var, shape ...int) *Var {
	return wrapResult("Reshape", x.reshapedTensor(shape), x).setDerivatives(reshapeBackward, reshapeTwice)
}

func reshapeBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		dispatch(y.op, y, copyData[float32], copyData[float64], copyOn)(dx, dy)
	})
}

func reshapeTwice(y, dy *Var) derivatives { return derivativesOf(Reshape(dy, y.inputs[0].Shape()...)) }

func copyOn(to, from *tensor.Tensor) { to.CopyFrom(from.View(to.Shape()...)) }

// copyData copies the elements of a contiguous tensor to a tensor of another shape.
func copyData[F kernel.Float](to, from *tensor.Tensor) { copy(data[F](to), data[F](from)) }

// reshapedTensor returns the value with another shape. A Scope keeps views of its own tensors,
// because it reuses both. Views of other tensors on the heap, such as batches, last until Reset.
func (v *Var) reshapedTensor(shape []int) *tensor.Tensor {
	switch {
	case v.lent && len(shape) <= maxDims:
	case v.scope != nil && v.t.IsShared() && v.t.Device() == nil:
		look := v.scope.viewAs(v.t, shape)
		defer look.Close()
		return v.ownTensor(look.Clone())
	case v.scope != nil:
		return v.scope.viewAs(v.t, shape)
	default:
		return copyIfShared(v.t.Reshape(shape...))
	}
	key := look{v.t, formOf(nil, v.t.DType(), shape)}
	t := v.scope.views[key]
	if t == nil {
		t = v.t.Reshape(shape...)
		v.scope.views[key] = t
	}
	return t
}

// A layout is the layout of a view. It contains its dimensions, so that it need not be on the heap.
type layout struct {
	dims           int
	sizes, strides [manyDims]int
	offset         int
}

// manyDims is the maximum number of dimensions of a view.
const manyDims = 64

// layoutOf returns a copy of the layout of a tensor, for modification. It panics with
// [tensor.ErrShape] if t has more than [manyDims] dimensions.
func layoutOf(t *tensor.Tensor) (l layout) {
	if l.dims = t.Dims(); l.dims > manyDims {
		misuse(tensor.ErrShape, "got a view of %d dimensions, want at most %d", l.dims, manyDims)
	}
	copy(l.sizes[:], t.Shape())
	copy(l.strides[:], t.Strides())
	l.offset = t.Offset()
	return l
}

// swap exchanges two dimensions.
func (l *layout) swap(i, j int) {
	l.sizes[i], l.sizes[j] = l.sizes[j], l.sizes[i]
	l.strides[i], l.strides[j] = l.strides[j], l.strides[i]
}

// viewTensor returns a view of t with layout l, or a copy if t is in shared memory of the host: a
// view would keep the block in use while other processes wait for its release. The result must not
// be used after s.Reset. If s is nil, it is not part of a scope and is released by the garbage
// collector.
func (s *Scope) viewTensor(t *tensor.Tensor, l *layout) *tensor.Tensor {
	v := s.view(t, l)
	if s == nil || l.dims > maxDims {
		return copyIfShared(v)
	}
	if !t.IsShared() || t.Device() != nil {
		return v
	}
	c := v.Clone()
	s.made = append(s.made, c)
	v.Close()
	return c
}

// view returns a view of t with layout l, which keeps a block of shared memory in use. The result
// must not be used after s.Reset. If s is nil, it is not part of a scope and is released by the
// garbage collector.
func (s *Scope) view(t *tensor.Tensor, l *layout) *tensor.Tensor {
	if s == nil || l.dims > maxDims {
		return t.AsStrided(slices.Clone(l.sizes[:l.dims]), slices.Clone(l.strides[:l.dims]), l.offset)
	}
	if s.looked == len(s.looks) {
		s.looks = append(s.looks, new(tensor.Tensor))
	}
	v := s.looks[s.looked]
	s.looked++
	lookAt(t, v, l.dims, [maxDims]int(l.sizes[:]), [maxDims]int(l.strides[:]), l.offset)
	return v
}

// resolveDim returns dim counted from the start. It panics with [tensor.ErrIndex] if dim is out
// of range.
func (v *Var) resolveDim(dim int) int {
	if n := v.t.Dims(); dim < -n || dim >= n {
		misuse(tensor.ErrIndex, "dimension %d is out of range [-%[2]d, %[2]d)", dim, n)
	} else if dim < 0 {
		dim += n
	}
	return dim
}

// Squeeze returns x without the given dimensions that have size 1, or without all dimensions of
// size 1 if dims is empty.
func Squeeze(x *Var, dims ...int) *Var {
	var room [2 * maxDims]int
	shape, named := room[:0], axes(0)
	for _, d := range dims {
		named |= 1 << x.resolveDim(d)
	}
	for i, n := range x.Shape() {
		if n != 1 || len(dims) > 0 && !named.has(i) {
			shape = append(shape, n)
		}
	}
	return Reshape(x, shape...)
}

// Unsqueeze returns x with a new dimension dim of size 1.
func Unsqueeze(x *Var, dim int) *Var {
	n := x.t.Dims() + 1
	if dim < -n || dim >= n {
		misuse(tensor.ErrIndex, "dimension %d is out of range [-%[2]d, %[2]d)", dim, n)
	}
	var room [2 * maxDims]int
	return Reshape(x, slices.Insert(append(room[:0], x.Shape()...), (dim+n)%n, 1)...)
}

// Expand returns x broadcast to a shape. A size of -1 keeps the size of x.
func Expand(x *Var, shape ...int) *Var {
	if x.scope == nil || len(shape) > maxDims {
		return wrapResult("Expand", copyIfShared(x.t.Expand(shape...)), x).setRule(identityRule)
	}
	l := layout{dims: len(shape), offset: x.t.Offset()}
	copy(l.sizes[:], shape)
	extra := len(shape) - x.t.Dims()
	for i, n := range x.Shape() {
		switch {
		case extra < 0 || shape[extra+i] != n && shape[extra+i] != -1 && n != 1:
			x.t.Expand(slices.Clone(shape)...) // panics
		case n != 1 || shape[extra+i] == -1 || shape[extra+i] == 1:
			l.sizes[extra+i], l.strides[extra+i] = n, x.t.Strides()[i]
		}
	}
	return wrapResult("Expand", x.scope.viewTensor(x.t, &l), x).setRule(identityRule)
}

// Flatten returns x, (N, ...), as (N, features).
func Flatten(x *Var) *Var {
	if x.t.Dims() == 0 {
		return Reshape(x, 1)
	}
	features := 1
	for _, n := range x.Shape()[1:] {
		features *= n
	}
	return Reshape(x, x.t.Dim(0), features)
}

// Permute returns x with its dimensions in another order. Each dimension must occur once.
func Permute(x *Var, dims ...int) *Var {
	n := x.t.Dims()
	if len(dims) != n || n > maxDims {
		return permuteDims(x, slices.Clone(dims))
	}
	l, from := layoutOf(x.t), layoutOf(x.t)
	var back [maxDims]int
	named := axes(0)
	for i, d := range dims {
		d = x.resolveDim(d)
		named |= 1 << d
		l.sizes[i], l.strides[i], back[d] = from.sizes[d], from.strides[d], i
	}
	if named != 1<<n-1 {
		x.t.Permute(slices.Clone(dims)...) // panics
	}
	v := wrapResult("Permute", x.scope.viewTensor(x.t, &l), x)
	v.note.place = back
	return v.setRule(func(y, dy *Var) derivatives { return derivativesOf(Permute(dy, y.note.place[:y.t.Dims()]...)) })
}

// permuteDims implements Permute for many dimensions.
func permuteDims(x *Var, dims []int) *Var {
	v := wrapResult("Permute", copyIfShared(x.t.Permute(dims...)), x)
	back := make([]int, len(dims))
	for i, d := range dims {
		back[x.resolveDim(d)] = i
	}
	return v.setRule(func(_, dy *Var) derivatives { return derivativesOf(Permute(dy, back...)) })
}

// Transpose returns x with dimensions a and b exchanged.
func Transpose(x *Var, a, b int) *Var {
	l := layoutOf(x.t)
	if l.dims > 0 {
		l.swap(x.resolveDim(a), x.resolveDim(b))
	}
	v := wrapResult("Transpose", x.scope.viewTensor(x.t, &l), x)
	v.note.place[0], v.note.place[1] = a, b
	return v.setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Transpose(dy, y.note.place[0],
			y.note.place[1]))
	})
}

// Flip returns x with its elements in reverse order along dims; see [tensor.Flip].
func Flip(x *Var, dims ...int) *Var {
	if len(dims) == 0 {
		return flipDims(x, 0)
	}
	return flipDims(x, x.dimSet(dims))
}

func flipDims(x *Var, dims axes) *Var {
	var room [2 * maxDims]int
	v := wrapOwned("Flip", tensor.Flip(x.t, dims.appendDims(room[:0])...), x)
	v.note.dims = dims
	return v.setRule(func(y, dy *Var) derivatives { return derivativesOf(flipDims(dy, y.note.dims)) })
}

// A slab is the part of a tensor at count indices of a dimension, step apart. If dropped is set,
// there is only one index, and the part does not have the dimension.
type slab struct {
	dim, from, count, step int
	dropped                bool
}

// Select returns the part of x at index i of dim, without this dimension. A negative i counts
// from the end. Select panics if i is out of range.
func Select(x *Var, dim, i int) *Var {
	dim = x.resolveDim(dim)
	n := x.t.Dim(dim)
	if i < -n || i >= n {
		misuse(tensor.ErrIndex, "index %d is out of range [-%[2]d, %[2]d)", i, n)
	}
	if i < 0 {
		i += n
	}
	return slicePart("Select", x, slab{dim, i, 1, 1, true})
}

// Narrow returns the indices start to start+n-1 of x along dim. A negative start counts from the
// end. Narrow panics if the indices are out of range.
func Narrow(x *Var, dim, start, n int) *Var {
	dim = x.resolveDim(dim)
	size := x.t.Dim(dim)
	if start < 0 && start >= -size {
		start += size
	}
	if start < 0 || n < 0 || start+n > size {
		misuse(tensor.ErrIndex, "Narrow: %d indices from %d are out of range for size %d", n, start, size)
	}
	return slicePart("Narrow", x, slab{dim, start, n, 1, false})
}

// Slice returns every step-th index of x along dim, from from up to but excluding to; see
// [tensor.Tensor.Slice]. step must be positive.
func Slice(x *Var, dim, from, to, step int) *Var {
	dim = x.resolveDim(dim)
	if step < 1 {
		misuse(tensor.ErrArgument, "Slice: got step %d, want at least 1", step)
	}
	n := x.t.Dim(dim)
	for _, i := range []*int{&from, &to} {
		if *i < 0 {
			*i += n
		}
		*i = min(max(*i, 0), n)
	}
	return slicePart("Slice", x, slab{dim, from, max(0, (to-from+step-1)/step), step, false})
}

// Split returns parts of x with size indices along dim each; the last may be smaller. size must be
// positive. In a Scope the slice and the parts are valid until Reset.
func Split(x *Var, size, dim int) []*Var {
	if size < 1 {
		misuse(tensor.ErrArgument, "Split: got part size %d, want at least 1", size)
	}
	n := x.t.Dim(dim)
	parts := x.scope.newVarList(max(1, (n+size-1)/size))
	for i := range parts {
		parts[i] = Narrow(x, dim, i*size, min(size, n-i*size))
	}
	return parts
}

// layoutIn returns the layout of the part in t.
func (s slab) layoutIn(t *tensor.Tensor) layout {
	l := layoutOf(t)
	l.offset += s.from * l.strides[s.dim]
	l.sizes[s.dim] = s.count
	l.strides[s.dim] *= s.step
	if s.dropped {
		copy(l.sizes[s.dim:], l.sizes[s.dim+1:l.dims])
		copy(l.strides[s.dim:], l.strides[s.dim+1:l.dims])
		l.dims--
	}
	return l
}

// slicePart returns the part s of x. The gradient of the other elements is zero.
func slicePart(op string, x *Var, s slab) *Var {
	l := s.layoutIn(x.t)
	v := wrapResult(op, x.scope.viewTensor(x.t, &l), x)
	v.note.slab = s
	return v.setDerivatives(partBackward, partTwice)
}

func partBackward(y *Var, dy *tensor.Tensor) {
	if x := y.inputs[0]; x.needsGradient() {
		all := x.gradientSum()
		l := y.note.slab.layoutIn(all)
		seen := y.scope.view(all, &l)
		seen.AddInPlace(dy)
		seen.Close()
	}
}

func partTwice(y, dy *Var) derivatives {
	return derivativesOf(embedPart(y.op, dy, y.inputs[0].Shape(), y.note.slab))
}

// embedPart returns zeros of a shape with the part s set to x: the inverse of slicePart.
func embedPart(op string, x *Var, shape []int, s slab) *Var {
	all := x.t.NewZeros(x.t.DType(), shape...)
	l := s.layoutIn(all)
	seen := x.scope.view(all, &l)
	seen.CopyFrom(x.t)
	seen.Close()
	v := wrapOwned(op, all, x)
	v.note.slab = s
	return v.setRule(func(y, dy *Var) derivatives { return derivativesOf(slicePart(y.op, dy, y.note.slab)) })
}

// Cat concatenates the values along dim. Their other dimensions must be equal. Their dtypes are
// promoted. Cat panics if there are no values.
func Cat(dim int, xs ...*Var) *Var {
	if len(xs) > 0 {
		xs = promoteAll(xs)
	}
	var room [2 * maxDims]*tensor.Tensor
	ts := room[:0]
	if len(xs) > len(room) {
		ts = scopeOf(xs).newTensorList(len(xs))
	}
	for _, x := range xs {
		ts = append(ts, x.t)
	}
	v := wrapOwned("Cat", tensor.Cat(dim, ts...), xs...)
	v.note.place[0] = dim
	return v.setDerivatives(catBackward, catTwice)
}

func catBackward(y *Var, dy *tensor.Tensor) {
	start := 0
	for _, x := range y.inputs {
		if x.isLegacyEmpty() {
			continue
		}
		dim := x.resolveDim(y.note.place[0])
		s := slab{dim: dim, from: start, count: x.t.Dim(dim), step: 1}
		if x.needsGradient() {
			l := s.layoutIn(dy)
			seen := y.scope.view(dy, &l)
			x.addGradient(seen)
			seen.Close()
		}
		start += s.count
	}
}

// isLegacyEmpty reports whether v has the shape (0): Cat ignores such values, regardless of the
// other shapes.
func (v *Var) isLegacyEmpty() bool { return v.t.Dims() == 1 && v.t.Dim(0) == 0 }

func catTwice(y, dy *Var) derivatives {
	parts, start := y.scope.newVarList(len(y.inputs)), 0
	for i, x := range y.inputs {
		if dim := y.note.place[0]; !x.isLegacyEmpty() {
			parts[i] = Narrow(dy, dim, start, x.t.Dim(dim))
			start += x.t.Dim(dim)
		}
	}
	return derivatives{many: parts}
}

// Stack concatenates the values along a new dimension dim. They must have the same shape. Their
// dtypes are promoted. Stack panics if there are no values.
func Stack(dim int, xs ...*Var) *Var {
	wide := scopeOf(xs).newVarList(len(xs))
	for i, x := range xs {
		wide[i] = Unsqueeze(x, dim)
	}
	return Cat(dim, wide...)
}
