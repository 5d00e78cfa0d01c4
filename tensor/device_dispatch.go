package tensor

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
)

// The instances of package device's generic types for this package's dtypes.
type (
	computer      = device.Computer[DType]
	deviceOperand = device.Operand[DType]
)

func init() {
	device.Provide(device.Tensors[*Tensor, DType]{
		Computer: computerOf, Operand: (*Tensor).operand, Memory: (*Tensor).deviceMemory, Over: tensorOver,
		Reduce: func(r device.Reduction, t *Tensor, dims ...int) *Tensor { return reduction(r).reduceDims(t, dims) },
		Block:  (*Tensor).block, Vector: (*Tensor).vector, OpenBlock: openBlock,
	})
}

// operand returns t as an operand of a computer. It is borrowed: t must stay open and reachable
// until the device call returns.
func (t *Tensor) operand() deviceOperand {
	o := deviceOperand{Memory: t.deviceMemory(), DType: t.dtype, Offset: t.offset, Shape: t.Shape(),
		Strides: t.Strides()}
	if o.Memory == nil && t.Numel() == 1 {
		copy(o.Value[:], t.bytes()[t.offset*t.dtype.Size():][:t.dtype.Size()])
	}
	return o
}

// computerOf returns the computer of the device that the tensors are on, or nil for the host. It
// panics with an error that wraps ErrUnsupported if the device cannot compute, or ErrDevices if
// there are several devices.
func computerOf(ts ...*Tensor) computer { return computerOn(commonDevice(ts)) }

func computerOn(dev Device) computer {
	if dev == nil {
		return nil
	}
	c, ok := device.EngineOf(dev).(computer)
	if !ok {
		panic(fmt.Errorf("%w: %v has no compute kernels: copy the tensor to the host with CPU",
			ErrUnsupported, dev))
	}
	return c
}

// commonDevice returns the device of the operands, or nil for the host. It panics with ErrDevices
// if they are on different devices, except that scalars on the host, which have no dimensions,
// may be combined with tensors on any device.
func commonDevice(ts []*Tensor) Device {
	var dev Device
	near := false
	for _, t := range ts {
		switch there := t.Device(); {
		case there == nil:
			near = near || len(t.Shape()) > 0
		case dev == nil:
			dev = there
		case dev != there:
			panic(deviceMismatch(dev, there))
		}
	}
	if dev != nil && near {
		panic(deviceMismatch(dev, nil))
	}
	return dev
}

func deviceMismatch(a, b Device) error {
	return fmt.Errorf("%w, but found at least two devices, %s and %s", ErrDevices, deviceName(a), deviceName(b))
}

// emptyOn is like Place.Empty, for operations that cannot return errors. It panics with the
// device's error.
func emptyOn(dev Device, dt DType, shape ...int) *Tensor {
	if dev == nil {
		return Empty(dt, shape...)
	}
	// The copy keeps shape from escaping to the heap.
	t, err := On(dev).Empty(dt, slices.Clone(shape)...)
	must(err)
	return t
}

// emptyFor returns an uninitialized tensor on the device of the operands. It panics if they are
// on different devices: see commonDevice.
func emptyFor(dt DType, shape []int, in ...*Tensor) *Tensor {
	return emptyOn(commonDevice(in), dt, shape...)
}

// emptyLike returns an empty tensor for the result of an elementwise operation. Its dimensions have
// the memory order of the operands.
func emptyLike(dt DType, shape []int, in ...*Tensor) *Tensor {
	out := emptyFor(dt, shape, in...)
	out.matchOrder(in)
	return out
}

// NewEmpty returns a tensor with uninitialized elements on t's device, or on the heap if t is on
// the host. It panics with the device's errors; see [Catch].
func (t *Tensor) NewEmpty(dt DType, shape ...int) *Tensor { return emptyOn(t.Device(), dt, shape...) }

// NewZeros returns a tensor of zeros on t's device, or on the heap if t is on the host. It panics
// with the device's errors; see [Catch].
func (t *Tensor) NewZeros(dt DType, shape ...int) *Tensor {
	if t.Device() == nil {
		return New(dt, shape...)
	}
	return t.NewEmpty(dt, shape...).Zero()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// applyOnDevice implements apply if out or an operand is on a device, and returns out. there must
// be the common device of the operands in. It panics with ErrDevices if out is on another one,
// and with the device's errors. applyOnDevice converts operands that the device cannot read
// directly, and replaces them in the slice in; see needsCast.
func (r rows) applyOnDevice(there Device, out *Tensor, in []*Tensor) *Tensor {
	dev := out.Device()
	if there != dev && (there != nil || slices.ContainsFunc(in, func(t *Tensor) bool { return len(t.Shape()) > 0 })) {
		panic(deviceMismatch(dev, there))
	}
	if out.Numel() == 0 {
		return out
	}
	if r.needsCast(out.dtype, r.out) {
		result := emptyOn(dev, r.out, out.Shape()...)
		defer result.release()
		result.matchOrder([]*Tensor{out})
		return out.CopyFrom(r.applyOnDevice(there, result, in))
	}
	for i, t := range in {
		if r.needsCast(t.dtype, r.in[i]) {
			in[i] = t.To(r.in[i])
			defer in[i].release()
		}
	}
	w := newWalk(nil, out, in)
	operands := make([]deviceOperand, len(in))
	for i, t := range in {
		operands[i] = w.operand(t, i)
	}
	must(wrapOp(r.op, dev, computerOn(dev).Map(&operations[r.op].Op, w.operand(out, output), operands...)))
	runtime.KeepAlive(in)
	return out.Touch()
}

// needsCast reports whether elements of dtype dt must be converted before or after a device
// computes in dtype with. A device that computes in Float32 reads and writes 16-bit floats
// directly.
func (r rows) needsCast(dt, with DType) bool {
	switch r.op {
	case opCopy:
		return false
	case opWhere, opAddAtomic:
		return dt != with
	}
	return dt != with && (with != Float32 || dt.computeDType() != Float32)
}

// operand returns t, which must be operand i of w, in the layout in which w traverses it.
func (w *walk) operand(t *Tensor, i int) deviceOperand {
	o := t.operand()
	o.Shape, o.Strides = make([]int, len(w.dims)), make([]int, len(w.dims))
	for k, d := range w.dims {
		o.Shape[k], o.Strides[k] = d.Size, d.Steps[i]
	}
	return o
}

// wrapOp adds the operation and the device to err. It returns nil if err is nil.
func wrapOp(what fmt.Stringer, dev Device, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tensor: %v on %v: %w", what, dev, err)
}

// copyHere implements CopyFrom if t, src or both are on a device, and returns t. It panics with
// the device's errors.
func (t *Tensor) copyHere(src *Tensor) *Tensor {
	to, from := t.Device(), src.Device()
	switch {
	case t.Numel() == 0:
		broadcastTo(src, t.Shape())
		return t
	case to == nil:
		near := mustOn(src, nil)
		defer near.release()
		return t.CopyFrom(near)
	case to == from || from == nil && len(src.Shape()) == 0 && !t.IsContiguous():
		return rows{op: opCopy, in: [3]DType{src.dtype}, out: t.dtype}.apply(t, src)
	case from == nil && len(src.Shape()) == 0:
		number := src.To(t.dtype)
		must(t.deviceMemory().Fill(t.offset*t.dtype.Size(), t.Nbytes(), number.contiguousBytes()))
		return t.Touch()
	case from == nil && t.dtype == src.dtype && slices.Equal(t.Shape(), src.Shape()) && t.IsContiguous() &&
		src.IsContiguous():
		must(t.deviceMemory().Write(t.offset*t.dtype.Size(), src.contiguousBytes()))
		runtime.KeepAlive(src)
		return t.Touch()
	}
	here := mustOn(src, to)
	defer here.release()
	return t.CopyFrom(here)
}

func broadcastTo(t *Tensor, shape []int) { t.broadcastStrides(shape) }

// mustOn is like ToDevice, for functions that cannot return errors: it panics with the device's
// errors.
func mustOn(t *Tensor, dev Device) *Tensor {
	there, err := t.ToDevice(dev)
	must(err)
	return there
}

// reduceOnDevice implements reduceDims for a tensor on a device. The result has dtype to.
func (r reduction) reduceOnDevice(t *Tensor, dims []int, to DType) *Tensor {
	f := r.foldFor(t.dtype)
	if t.Numel() == 0 {
		return mustOn(r.reduceDims(New(t.dtype, t.Shape()...), dims).convertOwned(to), t.Device())
	}
	if t.dtype != f.in && (f.in != Float32 || t.dtype.computeDType() != Float32) {
		t = t.To(f.in)
		defer t.release()
	}
	var kept, gone, shape []int
	reduced := t.dimSet(dims)
	for i, size := range t.Shape() {
		if reduced.has(i) {
			gone = append(gone, i)
		} else {
			kept, shape = append(kept, i), append(shape, size)
		}
	}
	result := emptyOn(t.Device(), to, shape...)
	in, out := t.operand(), result.operand()
	out.Shape, in.Strides = mergeDims(appendPicked(nil, t.Shape(), kept), appendPicked(nil, t.Strides(), kept))
	shape, strides := mergeDims(appendPicked(nil, t.Shape(), gone), appendPicked(nil, t.Strides(), gone))
	in.Shape, in.Strides = slices.Concat(out.Shape, shape), slices.Concat(in.Strides, strides)
	out.Strides = rowMajor(out.Shape)
	must(wrapOp(r, t.Device(), computerOn(t.Device()).Reduce(device.Reduction(r), out, in)))
	runtime.KeepAlive(t)
	return result
}

// mergeDims returns an equivalent layout with as few dimensions as possible, and no dimensions of
// size 1.
func mergeDims(shape, strides []int) (sizes, steps []int) {
	var dims []device.Dim[int]
	for i, n := range shape {
		if n != 1 {
			dims = append(dims, device.Dim[int]{Size: n, Steps: strides[i]})
		}
	}
	for _, d := range device.Merge(dims, func(step *int) []int { return []int{*step} }) {
		sizes, steps = append(sizes, d.Size), append(steps, d.Steps)
	}
	return sizes, steps
}

// multiplyOnDevice implements multiply on a device: t = x·y + beta·t.
func (t *Tensor) multiplyOnDevice(x, y *Tensor, batch []int, beta float64) {
	switch {
	case t.Numel() == 0:
		return
	case x.Dim(-1) == 0 && beta == 0: // t may contain NaN
		t.Zero()
		return
	case x.Dim(-1) == 0:
		t.MulScalarInPlace(beta)
		return
	}
	n := product(batch)
	a, b := x.uniformBatch(batch, n), y.uniformBatch(batch, n)
	out := t.operand()
	out.Shape = []int{n, t.Dim(-2), t.Dim(-1)}
	out.Strides = rowMajor(out.Shape)
	must(wrapOp(name("MatMul"), t.Device(), computerOn(t.Device()).MatMul(out, a.operand(), b.operand(), beta)))
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	t.Touch()
}

// A name is the name of an operation that is not an op.
type name string

func (n name) String() string { return string(n) }

// uniformBatch broadcasts the dimensions of t before the last two to batch, and returns the n
// matrices in a tensor of three dimensions: a borrowed view of t if the matrices have a single
// stride, and otherwise a copy. t must be a result of asMatrices, and n the product of batch.
func (t *Tensor) uniformBatch(batch []int, n int) *Tensor {
	rows, cols := t.Dim(-2), t.Dim(-1)
	wide := t.borrowView(append(slices.Clone(batch), rows, cols), nil, t.offset)
	t.appendBroadcastStrides(wide.Strides(), wide.Shape())
	matrix := wide.Strides()[len(batch):]
	if trans, ld, _ := t.gemmLayout(); trans {
		matrix[0], matrix[1] = 1, ld
	} else {
		matrix[0], matrix[1] = ld, 1
	}
	last := len(batch)
	sizes, steps := mergeDims(wide.Shape()[:last], wide.Strides()[:last])
	switch len(sizes) {
	case 0:
		steps = []int{0}
	case 1:
	default:
		dense := wide.Clone()
		return newTensor(dense.store(), t.dtype, []int{n, rows, cols}, rowMajor([]int{n, rows, cols}), 0)
	}
	return t.borrowView([]int{n, rows, cols}, append(steps, matrix...), t.offset)
}

// gatherOnDevice and scatterOnDevice implement gather and scatter on a device. dim must not be
// negative, and the caller must have checked the shapes. They panic with ErrIndex if an index is
// out of range. A scatter is queued after the device has checked the indices.
func (t *Tensor) gatherOnDevice(what string, dim int, idx, out *Tensor) {
	if out.Numel() == 0 {
		return
	}
	n, dev := t.Shape()[dim], computerOf(t, idx)
	if n == 0 {
		misuse(ErrIndex, "%s along dimension %d of shape %v: dimension has size 0", what, dim, t.Shape())
	}
	// Check for negative indices, which Gather would accept.
	i, found, err := dev.Outside(idx.operand(), 0, int64(n), func() {})
	if err == nil && !found {
		i, found, err = dev.Gather(out.operand(), t.operand(), idx.operand(), dim)
	}
	runtime.KeepAlive(t)
	runtime.KeepAlive(idx)
	checkIndexReport(what, t, n, i, found, err)
}

func (t *Tensor) scatterOnDevice(what string, dim int, idx, src *Tensor, add bool) {
	if idx.Numel() == 0 {
		return
	}
	n, dev := t.Shape()[dim], computerOf(t, idx, src)
	i, found, err := dev.Outside(idx.operand(), 0, int64(n), func() {})
	checkIndexReport(what, t, n, i, found, err)
	from := src.borrowView(idx.Shape(), src.Strides(), src.offset)
	must(wrapOp(name(what), t.Device(), dev.Scatter(t.operand(), from.operand(), idx.operand(), dim, add)))
	runtime.KeepAlive(src)
	runtime.KeepAlive(idx)
	t.Touch()
}

// checkIndexReport panics with the device's error if err is not nil, and with ErrIndex if found
// is true: then the device found index i, which is outside the range from 0 to n-1.
func checkIndexReport(what string, t *Tensor, n int, i int64, found bool, err error) {
	must(wrapOp(name(what), t.Device(), err))
	if found {
		resolveIndex(int(i), n, what)
	}
}

// generate sets the elements of a tensor on a device to the sequence s and returns t. It panics
// with the device's errors.
func (t *Tensor) generate(s device.Sequence) *Tensor {
	dt := t.dtype
	if s.Kind != device.RandomInteger {
		dt = dt.computeDType()
	}
	if t.Numel() == 0 {
		return t
	}
	if dt != t.dtype || !t.IsContiguous() {
		dense := t.NewEmpty(dt, t.Shape()...)
		defer dense.release()
		return t.CopyFrom(dense.generate(s))
	}
	must(wrapOp(name("Generate"), t.Device(), computerOf(t).Generate(t.operand(), s)))
	return t.Touch()
}
