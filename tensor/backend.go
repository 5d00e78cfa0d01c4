package tensor

import (
	"math"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// A backend computes what goes beyond rows.apply: by loops over the bytes of tensors on the host,
// or by a device's Computer. Shapes and dtypes were checked.
type backend interface {
	// fuses reports whether rows.apply takes any loop, and not only those of the table.
	fuses() bool

	// fill sets all elements of t to v, and copy to those of src, broadcast and converted.
	fill(t *Tensor, v float64)
	copy(t, src *Tensor)

	// generate sets the elements of t to a sequence, whose key is drawn from g if it is random: on
	// the host by here.
	generate(t *Tensor, g *Generator, s device.Sequence, here func())

	// reduce reduces dimensions of t, by default all, and truth does as Bool, where nothing is
	// empty.
	reduce(r reduction, t *Tensor, dims []int) *Tensor
	truth(r reduction, empty float64, t *Tensor, dims []int) *Tensor

	// multiply sets t, which is contiguous, to the products of the matrices of x and y, and
	// addProduct adds that of two matrices.
	multiply(t, x, y *Tensor, batch []int)
	addProduct(t, a, b *Tensor)

	gather(what string, t *Tensor, dim int, idx, out *Tensor)
	// scatter changes elements of t by those of src as move does, which adds if it is nil.
	scatter(what string, t *Tensor, dim int, idx, src *Tensor, move castFunc)
	addAtomic(t, o *Tensor)

	// nearby returns what f makes of t's elements on the host, where t is: for what no device has a
	// kernel for.
	nearby(t *Tensor, f func(near *Tensor) *Tensor) *Tensor
}

// backendOf returns what computes with tensors, of which one may be on a device.
func backendOf(ts ...*Tensor) backend {
	for _, t := range ts {
		if _, ok := t.device(); ok {
			return deviceBackend{}
		}
	}
	return hostBackend{}
}

type hostBackend struct{}

func (hostBackend) fuses() bool { return true }

func (hostBackend) fill(t *Tensor, v float64) {
	switch {
	case !t.IsContiguous():
		t.CopyFrom(Scalar(t.dtype, v))
		return
	case math.Float64bits(v) == 0:
		clear(t.span())
	default:
		kernel.Repeat(t.span(), Scalar(t.dtype, v).span())
	}
	t.Touch()
}

func (hostBackend) copy(t, src *Tensor) { t.copyLoops(src) }

func (hostBackend) generate(_ *Tensor, _ *Generator, _ device.Sequence, here func()) { here() }

func (hostBackend) reduce(r reduction, t *Tensor, dims []int) *Tensor { return r.loops(t, dims) }

func (hostBackend) truth(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	return truthLoops(r, empty, t, dims)
}

func (hostBackend) multiply(t, x, y *Tensor, batch []int) { t.multiplyLoops(x, y, batch) }

func (hostBackend) addProduct(t, a, b *Tensor) { t.Add(MatMul(a, b)) }

func (hostBackend) gather(what string, t *Tensor, dim int, idx, out *Tensor) {
	t.gatherLoops(what, dim, idx, out)
}

func (hostBackend) scatter(what string, t *Tensor, dim int, idx, src *Tensor, move castFunc) {
	t.scatterLoops(what, dim, idx, src, move)
}

func (hostBackend) addAtomic(t, o *Tensor) { t.addAtomicLoops(o) }

func (hostBackend) nearby(t *Tensor, f func(near *Tensor) *Tensor) *Tensor { return f(t) }

type deviceBackend struct{}

func (deviceBackend) fuses() bool { return false }

func (deviceBackend) fill(t *Tensor, v float64) { t.CopyFrom(Scalar(t.dtype, v)) }

func (deviceBackend) copy(t, src *Tensor) { t.copyHere(src) }

func (deviceBackend) generate(t *Tensor, g *Generator, s device.Sequence, _ func()) {
	if s.Kind != device.Arithmetic {
		s.Key = g.orDefault().Uint64()
	}
	t.generate(s)
}

func (deviceBackend) reduce(r reduction, t *Tensor, dims []int) *Tensor { return r.remote(t, dims) }

func (deviceBackend) truth(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	if t.Numel() == 0 {
		return mustOn(truthful(r, empty, New(t.dtype, t.shape...), dims), t.Device())
	}
	truth := t.To(Bool)
	defer truth.release()
	return r.remote(truth, dims)
}

func (deviceBackend) multiply(t, x, y *Tensor, batch []int) { t.multiplyRemote(x, y, batch, 0) }

func (deviceBackend) addProduct(t, a, b *Tensor) {
	if !t.IsContiguous() || t.dtype != a.dtype || t.dtype != b.dtype || t.dtype != t.dtype.computed() {
		t.Add(MatMul(a, b))
		return
	}
	home([]*Tensor{t, a, b})
	t.multiplyRemote(a.matrices(t.dtype, 0), b.matrices(t.dtype, 1), nil, 1)
}

func (deviceBackend) gather(what string, t *Tensor, dim int, idx, out *Tensor) {
	t.gatherRemote(what, t.wantAlong(what, dim, idx, out), idx, out)
}

func (deviceBackend) scatter(what string, t *Tensor, dim int, idx, src *Tensor, move castFunc) {
	t.scatterRemote(what, t.wantAlong(what, dim, idx, src), idx, src, move == nil)
}

func (deviceBackend) addAtomic(t, o *Tensor) {
	rows{op: opAddAtomic, in: [3]DType{t.dtype}, out: t.dtype}.apply(t, o)
}

func (deviceBackend) nearby(t *Tensor, f func(near *Tensor) *Tensor) *Tensor {
	near := mustOn(t, nil)
	defer near.release()
	return mustOn(f(near), t.Device())
}
