package tensor

import "runtime"

// Nonzero returns the indices (Int64) of the nonzero elements, (n, dimensions), one element a row.
func Nonzero(t *Tensor) *Tensor { return backendOf(t).nearby(t, nonzero) }

func nonzero(t *Tensor) *Tensor {
	all := make([]int, len(t.shape))
	for d := range all {
		all[d] = d
	}
	truth := t.rowsOf(Bool, all, nil)
	mask := truth.span()
	out := New(Int64, countTrue(mask), len(t.shape))
	found, last := typed[int64](out.span()), len(t.shape)-1
	index := make([]int64, len(t.shape))
	for _, yes := range mask {
		if yes != 0 {
			copy(found, index)
			found = found[len(index):]
		}
		for d := last; d >= 0; d-- {
			if index[d]++; d == 0 || int(index[d]) < t.shape[d] {
				break
			}
			index[d] = 0
		}
	}
	runtime.KeepAlive(t)
	return out
}

func countTrue(mask []byte) (n int) {
	for _, yes := range mask {
		n += int(number(yes != 0))
	}
	return n
}

// MaskedSelect returns the elements of t where mask (Bool) is true, in one dimension. t and mask
// are broadcast.
func MaskedSelect(t, mask *Tensor) *Tensor {
	mask.want(Bool)
	shape := broadcast(t.shape, mask.shape)
	if len(shape) == 0 {
		shape = []int{1}
	}
	order := make([]int, len(shape))
	for d := range order {
		order[d] = d
	}
	x, m := t.Expand(shape...), mask.Expand(shape...)
	defer x.release()
	defer m.release()
	if home([]*Tensor{t, mask}) != nil {
		return Index(x.Reshape(-1), Nonzero(m.Reshape(-1)).Select(1, 0))
	}
	chosen := m.rowsOf(Bool, order, nil).span()
	out := Empty(t.dtype, countTrue(chosen))
	bySize(t.dtype.Size(), selecting[uint8], selecting[uint16], selecting[uint32], selecting[uint64],
		selecting[complex128])(
		out.span(), x.rowsOf(t.dtype, order, nil).span(), chosen)
	runtime.KeepAlive(t)
	runtime.KeepAlive(mask)
	return out
}

func selecting[T any](dst, src, chosen []byte) {
	d, s := typed[T](dst), typed[T](src)
	for i, yes := range chosen {
		if yes != 0 {
			d[0], d = s[i], d[1:]
		}
	}
}
