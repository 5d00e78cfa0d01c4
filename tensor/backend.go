package tensor

import (
	"math"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// A backend performs the operations that rows.apply does not cover: by loops over tensor memory on
// the host, or by a device's Computer. Callers must have checked shapes and dtypes. A backend is
// not an interface, because arguments of interface methods escape: a training step must not
// allocate.
type backend struct{ onDevice bool }

// backendOf returns the backend of devices if at least one of the tensors is on a device, and the
// backend of the host otherwise. It does not check whether all of them are on the same device.
func backendOf(ts ...*Tensor) backend {
	for _, t := range ts {
		if _, ok := t.device(); ok {
			return backend{onDevice: true}
		}
	}
	return backend{}
}

// acceptsAnyLoop reports whether rows.apply accepts any loop, as it does on the host. Devices
// only accept the operations of the table operations.
func (b backend) acceptsAnyLoop() bool { return !b.onDevice }

// fill sets all elements of t to v.
func (b backend) fill(t *Tensor, v float64) {
	switch {
	case b.onDevice || !t.IsContiguous():
		t.CopyFrom(Scalar(t.dtype, v))
		return
	case math.Float64bits(v) == 0:
		clearBytes(t.contiguousBytes())
	default:
		kernel.Repeat(t.contiguousBytes(), Scalar(t.dtype, v).contiguousBytes())
	}
	t.Touch()
}

// copy sets the elements of t to the elements of src, broadcast and converted.
func (b backend) copy(t, src *Tensor) {
	if b.onDevice {
		t.copyHere(src)
	} else {
		t.copyLoops(src)
	}
}

// generate sets the elements of t to the sequence s. On the host, it calls here, which must set
// them, and ignores g and s. On a device, it draws the key of a random sequence from g; a nil g
// is the default generator.
func (b backend) generate(t *Tensor, g *Generator, s device.Sequence, here func()) {
	if !b.onDevice {
		here()
		return
	}
	if s.Kind != device.Arithmetic {
		s.Key = g.generatorOrDefault().Uint64()
	}
	t.generate(s)
}

// reduce returns a new tensor without the given dimensions of t, which it reduces with r. It
// reduces all dimensions if dims is empty. The result's dtype depends on r and on t's dtype; see
// foldFor.
func (b backend) reduce(r reduction, t *Tensor, dims []int) *Tensor {
	if b.onDevice {
		return r.reduceOnDevice(t, dims, r.foldFor(t.dtype).out)
	}
	return r.reduceLoops(t, t.dimSet(dims))
}

// reduceSameDType is like reduce, but the result has t's dtype.
func (b backend) reduceSameDType(r reduction, t *Tensor, dims []int) *Tensor {
	if b.onDevice && t.dtype != Complex64 && t.dtype != Complex128 {
		return r.reduceOnDevice(t, dims, t.dtype)
	}
	return b.reduce(r, t, dims).convertOwned(t.dtype)
}

// reduceBool reduces t's elements converted to Bool, and returns a Bool tensor. r must be redMin
// or redMax. empty, which must be 0 or 1, is the result for no elements.
func (b backend) reduceBool(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	switch {
	case !b.onDevice:
		return reduceBoolLoops(r, empty, t, dims)
	case t.Numel() == 0:
		return mustOn(reduceAsBool(r, empty, New(t.dtype, t.Shape()...), dims), t.Device())
	}
	truth := t.To(Bool)
	defer truth.release()
	return r.reduceOnDevice(truth, dims, r.foldFor(Bool).out)
}

// multiply sets t, which must be contiguous, to the products of the matrices of x and y, which
// asMatrices returned. batch is the shape of t without the last two dimensions; x and y are
// broadcast to it.
func (b backend) multiply(t, x, y *Tensor, batch []int) {
	if b.onDevice {
		t.multiplyOnDevice(x, y, batch, 0)
	} else {
		t.multiplyLoops(x, y, batch)
	}
}

// productDType returns the dtype in which x and y are multiplied if their product has dtype dt.
// Devices read 16-bit floats directly and accumulate in float32, as do processors with BFloat16
// instructions.
func (b backend) productDType(dt DType, x, y *Tensor) DType {
	if b.onDevice {
		return dt
	}
	if dt == BFloat16 && len(x.Shape()) > 1 && len(y.Shape()) > 1 &&
		kernel.HasBrainProduct(x.Dim(-2), y.Dim(-1), x.Dim(-1)) {
		return dt
	}
	return dt.computeDType()
}

// addProduct adds the product of the matrices x and y to t. The caller must have checked that all
// three have two dimensions and matching shapes.
func (b backend) addProduct(t, x, y *Tensor) {
	inPlace := b.onDevice || t.dtype == Float32 || t.dtype == Float64
	if !inPlace || !t.IsContiguous() || t.dtype != x.dtype || t.dtype != y.dtype ||
		t.SameStorage(x) || t.SameStorage(y) {
		product := MatMul(x, y)
		defer product.release()
		t.AddInPlace(product)
		return
	}
	commonDevice([]*Tensor{t, x, y})
	left, right := x.asMatrices(t.dtype, 0), y.asMatrices(t.dtype, 1)
	if b.onDevice {
		t.multiplyOnDevice(left, right, nil, 1)
	} else {
		t.addProductLoops(left, right)
	}
	left.releaseRows(x)
	right.releaseRows(y)
}

func (b backend) gather(what string, t *Tensor, dim int, idx, out *Tensor) {
	if b.onDevice {
		t.gatherOnDevice(what, t.requireAlong(what, dim, idx, out), idx, out)
	} else {
		t.gatherLoops(what, dim, idx, out)
	}
}

// scatter writes elements of src to t with move, or adds them if move is nil; see
// [Tensor.ScatterInPlace] for the elements. It panics with ErrIndex if an index in idx is out of
// range. what is the name of the operation in errors.
func (b backend) scatter(what string, t *Tensor, dim int, idx, src *Tensor, move castFunc) {
	if b.onDevice {
		t.scatterOnDevice(what, t.requireAlong(what, dim, idx, src), idx, src, move == nil)
	} else {
		t.scatterLoops(what, dim, idx, src, move)
	}
}

func (b backend) addAtomic(t, o *Tensor) {
	if b.onDevice {
		rows{op: opAddAtomic, in: [3]DType{t.dtype}, out: t.dtype}.apply(t, o)
	} else {
		t.addAtomicLoops(o)
	}
}

// onHostCopy calls f with a copy of t on the host and returns the result on t's device. It is for
// operations without a kernel on any device.
func (b backend) onHostCopy(t *Tensor, f func(near *Tensor) *Tensor) *Tensor {
	if !b.onDevice {
		return f(t)
	}
	near := mustOn(t, nil)
	defer near.release()
	return mustOn(f(near), t.Device())
}
